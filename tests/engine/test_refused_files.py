"""Files that the system does not let us open: nothing is wrong with them, and nobody is told to restore them."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from lakedbapi import errors
from lakedbapi.engine.base import Query, ScanRelation
from lakedbapi.engine.duckdb import DuckDBEngine, blame
from lakedbapi.engine.duckdb.errors import translate
from lakedbapi.model.scan import Scan

from .conftest import SCHEMA, T, group, rows, write

LAKE = ("lake", "main")


@contextmanager
def without_rights(path: str) -> Iterator[None]:
    """`path` may not be used by this process, not even where it runs as root."""
    before = os.stat(path).st_mode
    os.chmod(path, 0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        os.chmod(path, before)


@pytest.mark.parametrize("refused", ["", "..", "../.."])
def test_a_data_file_without_the_right_to_read_it(refused: str) -> None:
    """Of the file itself, of its folder, or of a folder further up."""
    with tempfile.TemporaryDirectory() as place:  # not below a folder that only its owner may enter
        os.chmod(place, 0o755)
        engine = DuckDBEngine([f"{place}/"], [], ["lake"])
        (file,) = write(engine, f"{place}/s/t/", "select 1, 'a'")
        query = Query("select id from t", {T: ScanRelation(Scan(SCHEMA, (group([file]),)))}, {}, LAKE)
        assert rows(engine.fetch(query)) == [(1,)]
        path = os.path.normpath(f"{file.path}/{refused}")
        with without_rights(path), pytest.raises(errors.OperationalError, match=file.path) as caught:
            engine.fetch(query)
        assert "Permission denied" in str(caught.value)
        assert "estore" not in str(caught.value)
        assert rows(engine.fetch(query)) == [(1,)]
        engine.close()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE])
def test_what_the_system_refuses_is_no_damage(monkeypatch: pytest.MonkeyPatch, directory: str, number: int) -> None:
    path = f"{directory}a.parquet"
    error = duckdb.IOException(f'IO Error: Cannot open file "{path}": {os.strerror(number)}')
    assert type(translate(error)) is errors.OperationalError
    assert "estore" not in str(translate(error))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), path)

    Path(directory).mkdir(exist_ok=True)
    Path(path).write_bytes(b"")
    monkeypatch.setattr(blame, "_read", refuse)
    found = blame._damage(path, None, [], whole=False)
    assert type(found) is errors.OperationalError
    assert "estore" not in str(found)


def test_a_file_that_is_gone_is_one_to_restore(directory: str) -> None:
    path = f"{directory}a.parquet"
    error = duckdb.IOException(f'IO Error: Cannot open file "{path}": {os.strerror(errno.ENOENT)}')
    assert "Restore it" in str(translate(error))
    assert "Restore it" in str(blame._damage(path, None, [], whole=False))
