"""Which file an error is about that names none: DuckDB may tell what is wrong, a filesystem why, but not which."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import IO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi import errors
from lakedbapi.engine.base import Relation, RelationName, ScanRelation
from lakedbapi.engine.duckdb import output
from lakedbapi.engine.duckdb.errors import UnnamedFileError, corrupt, missing, unopened
from lakedbapi.model.scan import FileGroup
from lakedbapi.storage import encryption

_MOST_FILES = 1_000
_MOST_BYTES = 1 << 30
"""How much is looked through for the culprit."""
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE})


def named(
    error: UnnamedFileError,
    relations: Mapping[RelationName, Relation],
    directory: str | None,
    filesystems: Sequence[fsspec.AbstractFileSystem],
) -> errors.Error:
    """The error with the file in it, looked for among those that `relations` read; `directory` was written to."""
    scans = {name: relation.scan for name, relation in relations.items() if isinstance(relation, ScanRelation)}
    groups = [group for scan in scans.values() for group in scan.files]
    for path, key in _files(groups):
        found = _damage(path, key, filesystems, whole=False)
        if found is not None:
            return found
    sizes = sum(group.files.column("file_size_bytes").to_numpy().sum() for group in groups)
    # A refused upload is more likely than damage, and not worth downloads.
    read_again = sizes <= _MOST_BYTES and (directory is None or output.is_local(directory))
    for path, key in _files(groups) if read_again else ():
        found = _damage(path, key, filesystems, whole=True)
        if found is not None:
            return found
    if directory is not None:
        return errors.OperationalError(f"{directory}: writing a data file failed: {error}")
    if sum(group.files.num_rows for group in groups) == 1:
        return corrupt(next(_files(groups))[0], error)
    tables = ", ".join(sorted(".".join(filter(None, name)) for name in scans)) or "the query"
    return errors.DatabaseError(f"A data file of {tables} could not be read: {error}")


def _files(groups: Sequence[FileGroup]) -> Iterator[tuple[str, str | None]]:
    """Paths, and the keys of encrypted files."""
    left = _MOST_FILES
    for group in groups:
        for row, path in enumerate(group.files.column("path").slice(0, left).to_pylist()):
            yield path, group.encryption_keys.get(row)
        left -= min(left, group.files.num_rows)


def _damage(
    path: str, key: str | None, filesystems: Sequence[fsspec.AbstractFileSystem], *, whole: bool
) -> errors.Error | None:
    """What is wrong with a file: with its footer, or, if `whole`, with any part of it."""
    filesystem = output.filesystem_of(path, filesystems) or fsspec.filesystem("file")
    try:
        with filesystem.open(path, "rb") as source:
            if key is None:
                _read(source, whole=whole)
            elif whole:
                encryption.decrypt(source.read(), key, path)
            else:
                encryption.read_footer(source, key, path)
    except errors.DamagedFileError as error:
        return error
    except errors.NotSupportedError:  # What decrypts is not installed, but in DuckDB.
        return None
    except FileNotFoundError as error:
        return missing(path, error)
    except (pa.ArrowException, OSError) as error:
        return unopened(path, error) if getattr(error, "errno", None) in _REFUSED else corrupt(path, error)
    return None


def _read(source: IO[bytes], *, whole: bool) -> None:
    with closing(pq.ParquetFile(source)) as file:
        for _ in file.iter_batches() if whole else ():
            pass
