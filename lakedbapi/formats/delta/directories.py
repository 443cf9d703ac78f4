"""Directories of schemas and tables: they are there as long as there is a file in them."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError, OperationalError
from lakedbapi.formats.delta.log import LOG
from lakedbapi.formats.tree import is_for_tables
from lakedbapi.storage.filesystem import Storage

_MARK = ".schema"
"""The file that keeps an empty directory on stores that have none."""


def create(storage: Storage, path: str) -> None:
    """A directory for the tables of a schema. NotSupportedError when other files lie there."""
    if not is_for_tables(storage, path):
        raise NotSupportedError(
            f"{path}: a new schema cannot be made in a directory with the files of a table that was not made to the "
            "end: remove them first, or choose another name"
        )
    if storage.has_directories:
        storage.makedirs(path)
    else:
        storage.overwrite(path + _MARK, b"")


def remove_empty(storage: Storage, path: str) -> None:
    """Remove the directory of a schema without tables. OperationalError when there are files in it."""
    files = [file for file in storage.list(path).column("path").to_pylist() if file != path + _MARK]
    if files:
        raise OperationalError(f"{path}: the directory of the schema is not empty, it has {files[0]}")
    storage.remove_tree(path)


def check_free(storage: Storage, root: str, own: set[str]) -> None:
    """NotSupportedError when a new table would lie among files that are not of its transaction."""
    others = [path for path in storage.list(root).column("path").to_pylist() if path not in own]
    if others:
        raise NotSupportedError(
            f"{root}: a new Delta table cannot be made in a directory with files, such as {others[0]}, which its "
            "VACUUM would remove: choose another name, or remove them first"
        )


def remove_table(storage: Storage, root: str) -> None:
    """Remove all files of a table, its log first: from then on there is no table.

    NotSupportedError when another table lies below it.
    """
    files = storage.list(root).column("path").to_pylist()
    own = root + LOG
    nested = next((path for path in files if f"/{LOG}" in path[len(root) :] and not path.startswith(own)), None)
    if nested is not None:
        raise NotSupportedError(
            f"{root}: the table cannot be dropped, another one lies below it: {nested}; drop that first"
        )
    log = sorted(path for path in files if path.startswith(own))
    storage.delete(log)
    storage.remove_empty(own)
    storage.delete([path for path in files if not path.startswith(own)])
    storage.remove_tree(root)


def withdraw(storage: Storage, root: str) -> None:
    """Remove what an attempt to make a table left of its directory."""
    storage.remove_empty(root + LOG)
    storage.remove_empty(root)
