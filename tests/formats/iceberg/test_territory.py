"""What is removed as nobody's, where other tables of the catalog lie in a table's directory and cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

import lakedbapi
from compliance.iceberg.rest_catalog import PASSWORD, USER, RestCatalog, serving

ORPHANS = "CALL remove_orphan_files(table => 't')"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Catalog, str]]:
    """The catalog of `connect`, and the URL of a server over it."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    catalog = load_catalog("default", type="sql", uri=uri, warehouse=warehouse)
    with serving(RestCatalog(catalog)) as port:
        yield catalog, f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{port}?warehouse={warehouse}"
    catalog.close()


def connect(folder: Path) -> lakedbapi.Connection:
    return lakedbapi.connect(
        f"iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}/warehouse", autocommit=True
    )


def nested(folder: Path, where: str) -> tuple[Path, set[Path]]:
    """A table `t` with a file that is nobody's, and the old files of `other`, whose metadata cannot be read."""
    with connect(folder) as lake:
        lake.execute("CREATE TABLE t (a INT)")
        lake.execute("INSERT INTO t VALUES (1)")
        orphan = Path(lake.execute("SELECT path FROM files('t')").fetchall()[0][0]).with_name("old.parquet")
        orphan.write_bytes(b"PAR1")
        place = orphan.parent.parent / where
        lake.execute(f"CREATE TABLE other (a INT) WITH ('location' = 'file://{place}')")
        lake.execute("INSERT INTO other VALUES (2)")
    theirs = {path for path in place.rglob("*") if path.is_file()}
    newest = max(path for path in theirs if path.name.endswith(".metadata.json"))
    newest.write_text(newest.read_text()[:100])
    for path in (orphan, *theirs):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return orphan, theirs


@pytest.mark.parametrize("where", ["data/inner", "metadata/inner"])
def test_a_table_that_cannot_be_read_keeps_its_files(tmp_path: Path, where: str) -> None:
    orphan, theirs = nested(tmp_path, where)
    with connect(tmp_path) as lake:
        assert lake.execute(ORPHANS).fetchall() == [(str(orphan),)]
        lake.execute("VACUUM t RETAIN 0 HOURS")
        lake.execute("PURGE FROM t WHERE a = 2")
        assert lake.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert all(path.exists() for path in theirs)
    assert not orphan.exists()


def test_nothing_is_removed_where_nobody_knows_whose_it_is(tmp_path: Path, served: tuple[Catalog, str]) -> None:
    orphan, theirs = nested(tmp_path, "data/inner")
    catalog, url = served
    with lakedbapi.connect(url, autocommit=True) as lake:
        for statement in (ORPHANS, "VACUUM t RETAIN 0 HOURS"):
            with pytest.raises(lakedbapi.OperationalError, match=r"one of table main\.other, which cannot be read"):
                lake.execute(statement)
        with pytest.raises(lakedbapi.OperationalError, match=r"rows may be left in .*old\.parquet"):
            lake.execute("PURGE FROM t WHERE a = 2")
        assert orphan.exists()
        assert all(path.exists() for path in theirs)
        catalog.drop_table("main.other")
        assert (str(orphan),) in lake.execute(ORPHANS).fetchall()
