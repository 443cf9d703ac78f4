"""Files that other programs wrote become data files of a table, as they are: matched by name, told by their footers."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.ddl.arrow_types import column_type
from lakedbapi.engine.base import Query, RelationName, ScanRelation
from lakedbapi.errors import DataError, Error, IntegrityError, NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import FileStats, RowChanges, StagedFile, WrittenFile
from lakedbapi.model.name_mapping import MappedName, NameMapping, folders
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct, Type
from lakedbapi.query.names import ResolvedTable
from lakedbapi.sql import guard
from lakedbapi.storage.parquet import Footer, LeafStatistics, read_footer
from lakedbapi.transaction import staged_groups

_SMALLER: Mapping[str, str] = {
    "int16": "int8 uint8",
    "int32": "int8 int16 uint8 uint16",
    "int64": "int8 int16 int32 uint8 uint16 uint32",
    "uint16": "uint8",
    "uint32": "uint8 uint16",
    "uint64": "uint8 uint16 uint32",
    "float64": "float32",
    "timestamp": "timestamp_s timestamp_ms timestamp_ns",
    "timestamp_s": "timestamp timestamp_ms",
    "timestamp_ms": "timestamp timestamp_s",
    "timestamp_ns": "timestamp timestamp_s timestamp_ms",
}
"""Types of columns in files, besides the same one, that a column of a table can be read from."""
_PRECISION = ("timestamp_s", "timestamp_ms", "timestamp", "timestamp_ns")
"""Values of a finer type are cut or rounded when they are read, as the version of the engine does it."""
_UNBOUNDED = frozenset("blob json interval timetz uuid int128 uint128 variant geometry".split())
"""Types whose bounds in footers are not used."""
_LONGEST_BOUND = 32
"""Bytes of text in a bound that no writer cuts short: it is an extreme then, which DuckDB answers min() from."""


@dataclass(frozen=True)
class _Rules:
    allow_missing: bool
    ignore_extra_columns: bool
    hive_partitioning: bool | None
    """None = folders count where they have the name of a column."""


@dataclass
class _Leaf:
    """A column of the table without fields inside, and where its statistics come from: a leaf column of the file.

    `is_exact`: values are read as the file has them.
    """

    field: Field
    number: int
    is_exact: bool


def add_files(
    context: Context,
    place: ResolvedTable,
    patterns: Sequence[str],
    *,
    allow_missing: bool,
    ignore_extra_columns: bool,
    hive_partitioning: bool | None,
) -> None:
    """Stage the files at `patterns`, paths or globs, as new files of the table.

    Columns are matched by name, and folders `name=value/` as well, which win over columns of the file.
    ProgrammingError for files that may not be read, are in the table already or have other columns than it (see the
    flags), DataError for types that do not fit, IntegrityError for rows that break its constraints.
    """
    catalog, table = place.view.catalog, place.table
    if not catalog.capabilities.name_mapping:
        raise NotSupportedError(f"files of other programs cannot be added to tables of format {catalog.format!r}")
    if catalog.file_layout(table).encrypted:
        raise NotSupportedError("files of other programs are not encrypted, so that this encrypted lake takes none")
    rules = _Rules(allow_missing, ignore_extra_columns, hive_partitioning)
    changes = context.transaction.changes(place.alias)
    rows = changes.rows.get(table.id, RowChanges())
    known = set(place.view.contents(table).files.column("path").to_pylist())
    known |= {staged.file.path for staged in rows.files}
    added: list[StagedFile] = []
    for path in _paths(context, catalog, patterns):
        if path in known:
            raise ProgrammingError(f"{path}: it is a file of table {table.name} already; its rows would be there twice")
        known.add(path)
        added.append(StagedFile(_described(context, catalog, table, path, rules)))
    _check_expressions(context, table, [staged.file for staged in added])
    staged = replace(rows, files=(*rows.files, *added))
    context.transaction.stage(place.alias, replace(changes, rows={**changes.rows, table.id: staged}))


def _paths(context: Context, catalog: Catalog, patterns: Sequence[str]) -> Iterator[str]:
    """Full paths, sorted within each pattern."""
    storage = catalog.storage
    for pattern in patterns:
        if "://" not in pattern:
            pattern = os.path.abspath(pattern).replace(os.sep, "/")
        found = sorted(storage.glob(pattern))
        if not found:
            raise ProgrammingError(f"no file matches {pattern!r}")
        for path in found:
            _check_place(context, catalog, path)
            yield path


def _check_place(context: Context, catalog: Catalog, path: str) -> None:
    """ProgrammingError for a file outside of the lake, unless the program trusts the SQL: files hold secrets, too."""
    real = path if "://" in path else os.path.realpath(path).replace(os.sep, "/")
    root = catalog.storage.root
    roots = (root,) if "://" in root else (root, os.path.realpath(root).replace(os.sep, "/") + "/")
    if not context.allow_external and not real.startswith(roots):
        raise ProgrammingError(
            f"{path} lies outside of the lake's data path {root}, and reading other files is not allowed: "
            "copy it below the data path, or connect(…, allow_external=True) in a trusted program"
        )


def _described(context: Context, catalog: Catalog, table: TableInfo, path: str, rules: _Rules) -> WrittenFile:
    footer = read_footer(catalog.storage, path)
    mapping = _Mapping(table, path, footer, rules)
    mapping.build()
    values = mapping.folder_values
    bounds = _bound_texts(context, path, footer, mapping.leaves, values)
    stats = {leaf.field.id: _stats(footer.leaves[leaf.number], bounds.get(leaf.field.id)) for leaf in mapping.leaves}
    for id in values:
        text = bounds[id][0]
        nulls = footer.record_count if text is None else 0
        stats[id] = FileStats(text, text, nulls, footer.record_count - nulls, None, 0)
    _check_nulls(table, path, footer, mapping.mapped_ids, stats)
    spec = table.partitioning
    has_keys = spec is not None and all(key.transform == "identity" and key.field_id in values for key in spec.fields)
    return WrittenFile(
        path=path,
        record_count=footer.record_count,
        file_size_bytes=footer.file_size_bytes,
        footer_size=footer.footer_size,
        row_group_count=footer.row_group_count,
        stats=stats,
        partition_id=spec.id if spec is not None and has_keys else None,
        partition_values=tuple(bounds[key.field_id][0] for key in spec.fields) if spec is not None and has_keys else (),
        names=NameMapping(tuple(mapping.entries)),
    )


class _Mapping:
    """Matches the columns of a file with those of a table."""

    def __init__(self, table: TableInfo, path: str, footer: Footer, rules: _Rules) -> None:
        self.entries: list[MappedName] = []
        self.leaves: list[_Leaf] = []
        self.folder_values: dict[int, tuple[Field, str | None]] = {}
        """By field id: the column, and the text in the path."""
        self._table = table
        self._path = path
        self._footer = footer
        self._rules = rules
        self._leaf_number = 0

    @property
    def mapped_ids(self) -> frozenset[int]:
        return frozenset(entry.field_id for entry in self.entries)

    def build(self) -> None:
        fields = {field.name.casefold(): field for field in self._table.schema.fields}
        in_path = {} if self._rules.hive_partitioning is False else folders(self._path)
        in_path = {name: value for name, value in in_path.items() if name.casefold() in fields}
        hidden = {name.casefold() for name in in_path}
        self._match(list(self._footer.schema), fields, hidden, (), None)
        for name, value in in_path.items():
            field = fields[name.casefold()]
            self.folder_values[field.id] = (field, value)
            self.entries.append(MappedName(name, field.id, None, is_folder=True))
        self._check_missing(self._table.schema.fields, ())

    def _match(
        self,
        columns: Sequence[pa.Field],
        fields: Mapping[str, Field],
        hidden: set[str],
        parents: tuple[str, ...],
        parent: int | None,
    ) -> None:
        for column in columns:
            field = fields.get(column.name.casefold())
            if column.name.casefold() in hidden:
                self._skip(column.type)
            elif field is not None:
                self._add(column.name, column.type, field, (*parents, column.name), parent)
            elif self._rules.ignore_extra_columns:
                self._skip(column.type)
            else:
                raise ProgrammingError(
                    f"{self._path}: table {self._table.name} has no column {'.'.join((*parents, column.name))!r}, "
                    "which the file has; set ignore_extra_columns => true to leave it out"
                )

    def _add(self, name: str, type: pa.DataType, field: Field, path: tuple[str, ...], parent: int | None) -> None:
        """Enter the file's column `name` for `field`, and what lies in it."""
        number = len(self.entries)
        self.entries.append(MappedName(name, field.id, parent))
        inner = field.type
        if isinstance(inner, Struct) and pa.types.is_struct(type):
            members = {member.name.casefold(): member for member in inner.fields}
            self._match(list(type), members, set(), path, number)
        elif isinstance(inner, Map) and pa.types.is_map(type):
            self._add("key", type.key_type, inner.key, (*path, "key"), number)
            self._add("value", type.item_type, inner.value, (*path, "value"), number)
        elif isinstance(inner, List) and (pa.types.is_list(type) or pa.types.is_large_list(type)):
            self._add("list", type.value_type, inner.element, (*path, "element"), number)
        else:
            found = self._checked_type(type, field, path)
            self.leaves.append(_Leaf(field, self._leaf_number, not _is_finer(found, field.type)))
            self._leaf_number += 1

    def _checked_type(self, type: pa.DataType, field: Field, path: tuple[str, ...]) -> Type:
        """The type in the file, which can be read as that of the table's column."""
        found = self._type_of(type)
        if found is None or not _fits(found, field.type):
            raise DataError(
                f"{self._path}: column {'.'.join(path)!r} is {str(type) if found is None else sql_type(found)} in the "
                f"file, which cannot be read as the {sql_type(field.type)} that table {self._table.name} has: insert "
                "its rows with INSERT … SELECT instead"
            )
        return found

    def _type_of(self, type: pa.DataType) -> Type | None:
        if _leaf_count(type) != 1 or pa.types.is_nested(type):
            return None
        logical = self._footer.logical_types[self._leaf_number].casefold()
        if logical in ("json", "uuid"):
            return Scalar(logical)
        try:
            return column_type("", type)
        except NotSupportedError:
            return None

    def _skip(self, type: pa.DataType) -> None:
        self._leaf_number += _leaf_count(type)

    def _check_missing(self, fields: Sequence[Field], parents: tuple[str, ...]) -> None:
        mapped = self.mapped_ids
        for field in fields:
            if field.id not in mapped and not self._rules.allow_missing:
                raise ProgrammingError(
                    f"{self._path}: column {'.'.join((*parents, field.name))!r} of table {self._table.name} is missing "
                    "in the file; set allow_missing => true to read its default there"
                )
            if field.id in mapped and isinstance(field.type, Struct):
                self._check_missing(field.type.fields, (*parents, field.name))


def _leaf_count(type: pa.DataType) -> int:
    if pa.types.is_struct(type):
        return sum(_leaf_count(field.type) for field in type)
    if pa.types.is_map(type):
        return _leaf_count(type.key_type) + _leaf_count(type.item_type)
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return _leaf_count(type.value_type)
    return 1


def _is_finer(found: Type, wanted: Type) -> bool:
    names = [type.name if isinstance(type, Scalar) else "" for type in (found, wanted)]
    return all(name in _PRECISION for name in names) and _PRECISION.index(names[0]) > _PRECISION.index(names[1])


def _fits(found: Type, wanted: Type) -> bool:
    """Whether a column of the type `wanted` can be read from one of the type `found`."""
    if found == wanted:
        return True
    if isinstance(found, Decimal) and isinstance(wanted, Decimal):
        return found.scale == wanted.scale and found.precision <= wanted.precision
    if isinstance(found, Scalar) and isinstance(wanted, Scalar):
        return found.name in _SMALLER.get(wanted.name, "").split()
    return False


def _bound_texts(
    context: Context,
    path: str,
    footer: Footer,
    leaves: Sequence[_Leaf],
    folder_values: Mapping[int, tuple[Field, str | None]],
) -> Mapping[int, tuple[str | None, str | None]]:
    """The bounds by field id in the engine's spelling; those of a folder are its value."""
    items: list[tuple[int, Field, Any, Any]] = []
    for leaf in leaves:
        statistics = footer.leaves[leaf.number]
        if leaf.is_exact and _is_usable(leaf.field.type, statistics):
            items.append((leaf.field.id, leaf.field, statistics.lower, statistics.upper))
    items += [(id, field, value, value) for id, (field, value) in folder_values.items()]
    if not items:
        return {}
    columns = [
        pa.array([low, high], pa.string() if id in folder_values else _plain_type(low)) for id, _, low, high in items
    ]
    name = RelationName.local("_lake_bounds")
    table = pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
    texts = ", ".join(f"CAST(CAST(c{i} AS {sql_type(item[1].type)}) AS VARCHAR)" for i, item in enumerate(items))
    try:
        found = context.engine.fetch(Query(f"SELECT {texts} FROM {name.sql}", {name: table}))
    except Error as error:
        raise DataError(f"{path}: a partition in the path has no value of its column's type: {error}") from error
    return {item[0]: (column[0].as_py(), column[1].as_py()) for item, column in zip(items, found.columns, strict=True)}


def _is_usable(type: Type, statistics: LeafStatistics) -> bool:
    values = (statistics.lower, statistics.upper)
    if None in values or (isinstance(type, Scalar) and type.name in _UNBOUNDED):
        return False
    if any(isinstance(value, str) for value in values):
        return all(len(value.encode()) <= _LONGEST_BOUND and "\0" not in value for value in values)
    return not any(isinstance(value, bytes) for value in values)


def _plain_type(value: Any) -> pa.DataType | None:
    """The Arrow type for a bound; None = what Arrow makes of the Python value."""
    if isinstance(value, datetime.datetime):
        return pa.timestamp("us", value.tzinfo and "UTC")
    return pa.uint64() if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63 else None


def _stats(leaf: LeafStatistics, bounds: tuple[str | None, str | None] | None) -> FileStats:
    low, high = bounds or (None, None)
    count = None if leaf.null_count is None else leaf.value_count - leaf.null_count
    return FileStats(low, high, leaf.null_count, count, None, leaf.size_bytes)


def _check_nulls(
    table: TableInfo, path: str, footer: Footer, mapped: frozenset[int], stats: Mapping[int, FileStats]
) -> None:
    """IntegrityError when a column that is NOT NULL has, or may have, NULL in the file."""
    for field in table.schema.fields:
        if field.nullable or not footer.record_count:
            continue
        if field.id not in mapped:
            fine, reason = field.initial_default is not None, "is missing in the file"
        elif field.id in stats:
            fine, reason = stats[field.id].null_count == 0, "has NULL in the file, or does not tell"
        else:
            fine, reason = False, "has fields inside, so that the file does not tell whether it has NULL"
        if not fine:
            raise IntegrityError(f"{path}: column {field.name!r} of table {table.name} is NOT NULL, but {reason}")


def _check_expressions(context: Context, table: TableInfo, files: Sequence[WrittenFile]) -> None:
    """IntegrityError when a row of the files violates a CHECK."""
    checks = [c.expression for c in table.constraints if c.kind == "check" and c.expression]
    if not checks:
        return
    for check in checks:
        guard.check_stored(check, f"a CHECK constraint of {table.name}")
    name = RelationName.local("_lake_added")
    relation = ScanRelation(Scan(table.schema, tuple(staged_groups(table, [StagedFile(file) for file in files]))))
    violated = " OR ".join(f"({check}\n) IS FALSE" for check in checks)
    text = f"SELECT count(*) FROM {name.sql} AS {quote_identifier(table.name)} WHERE {violated}"
    count = context.engine.fetch(Query(text, {name: relation})).column(0)[0].as_py()
    if count:
        raise IntegrityError(f"{count} rows of the files violate a CHECK constraint of table {table.name}")
