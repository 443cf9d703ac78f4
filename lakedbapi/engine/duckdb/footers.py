"""The schemas that Parquet files have themselves, where a table's columns cannot be found without them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.duckdb import driver
from lakedbapi.engine.duckdb.output import filesystem_of
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.storage import encryption

_CACHED_FILES = 100_000


@dataclass(frozen=True)
class Node:
    """A column or field in a file. The children of lists are (element), of maps (key, value)."""

    name: str
    field_id: int | None
    children: tuple[Node, ...] = ()

    @property
    def has_ids(self) -> bool:
        return any(node.field_id is not None for node in self.tree())

    def tree(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()


@dataclass(frozen=True)
class FileSchema:
    """`types` are DuckDB's types of the top-level columns, by position."""

    columns: tuple[Node, ...]
    types: tuple[str, ...]


def file_schemas(
    files: pa.Table, rows: npt.NDArray[np.int64], resources: Resources, keys: Mapping[int, str] = {}
) -> Iterator[tuple[FileSchema, npt.NDArray[np.int64]]]:
    """The distinct schemas among the `rows` of `files` (columns `path` and `file_size_bytes`, which may be NULL), each
    with the rows that have it; `keys` are those of encrypted files, by row."""
    columns = files.select(["path", "file_size_bytes"]).take(pa.array(rows))
    found: list[_File] = list(zip(*(column.to_pylist() for column in columns.columns), strict=True))
    encrypted = {file: keys[row] for file, row in zip(found, rows.tolist(), strict=True) if row in keys}
    # What is known is held here: the cache may forget it meanwhile, as one scan can have more files than it keeps.
    known = _cache.known(found)
    missing = [file for file in found if file not in known]
    known |= _load([file for file in missing if file not in encrypted], resources)
    known |= {file: _load_encrypted(file, encrypted[file], resources) for file in missing if file in encrypted}
    _cache.put({file: known[file] for file in missing})
    grouped: dict[FileSchema, list[int]] = {}
    for file, row in zip(found, rows.tolist(), strict=True):
        grouped.setdefault(known[file], []).append(row)
    for schema, same in grouped.items():
        yield schema, np.array(same, dtype=np.int64)


_File = tuple[str, int | None]
"""Path and size: a file of another program may take the name of one that is gone with its lake."""


def _load(files: Sequence[_File], resources: Resources) -> dict[_File, FileSchema]:
    if not files:
        return {}
    paths = [path for path, _ in files]
    # One file after the other would cost a round trip each; DuckDB reads the list in one go.
    listed = resources.paths(pa.array(paths))
    elements = driver.rows(
        resources.cursor,
        "SELECT file_name, name, field_id, coalesce(num_children, 0) AS num_children,"
        f" coalesce(converted_type, '') AS kind FROM parquet_schema({listed})",
        {},
    )
    by_file: dict[str, list[dict[str, object]]] = {}
    for element in elements:
        by_file.setdefault(str(element["file_name"]), []).append(element)
    types: dict[tuple[Node, ...], tuple[str, ...]] = {}
    loaded: dict[_File, FileSchema] = {}
    for path, size in files:
        columns = _tree(by_file[path])
        if columns not in types:
            described = driver.rows(
                resources.cursor, f"DESCRIBE SELECT * FROM read_parquet({resources.paths(pa.array([path]))})", {}
            )
            types[columns] = tuple(str(row["column_type"]) for row in described)
        loaded[path, size] = FileSchema(columns, types[columns])
    return loaded


def _load_encrypted(file: _File, key: str, resources: Resources) -> FileSchema:
    """DuckDB does not tell the schema of an encrypted file itself."""
    path, _ = file
    fs = filesystem_of(path, resources.filesystems)
    with open(path, "rb") if fs is None else fs.open(path, "rb") as source:
        elements = encryption.schema_elements(source, key, path)
    source_sql = f"read_parquet({resources.paths(pa.array([path]))}, {resources.encryption(key, path)})"
    described = driver.rows(resources.cursor, f"DESCRIBE SELECT * FROM {source_sql}", {})
    return FileSchema(_tree(elements), tuple(str(row["column_type"]) for row in described))


def _tree(elements: Iterable[Mapping[str, object]]) -> tuple[Node, ...]:
    """From the footer's depth-first list of elements; the first one is the root."""
    return _node(iter(elements)).children


def _node(elements: Iterator[Mapping[str, object]]) -> Node:
    element = next(elements)
    count, field_id = element["num_children"], element["field_id"]
    assert isinstance(count, int)
    children = tuple(_node(elements) for _ in range(count))
    kind = str(element["kind"])
    if kind in ("LIST", "MAP", "MAP_KEY_VALUE") and len(children) == 1:
        # The repeated group in between is an artefact of the encoding; in two-level lists it is the element itself.
        repeated = children[0]
        children = (
            repeated.children if repeated.children and (kind != "LIST" or len(repeated.children) == 1) else children
        )
    return Node(str(element["name"]), field_id if isinstance(field_id, int) else None, children)


class _Cache:
    def __init__(self) -> None:
        self._schemas: OrderedDict[_File, FileSchema] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, files: Iterable[_File]) -> dict[_File, FileSchema]:
        with self._lock:
            return {file: self._schemas[file] for file in files if file in self._schemas}

    def put(self, schemas: Mapping[_File, FileSchema]) -> None:
        with self._lock:
            self._schemas.update(schemas)
            while len(self._schemas) > _CACHED_FILES:
                self._schemas.popitem(last=False)


_cache = _Cache()
