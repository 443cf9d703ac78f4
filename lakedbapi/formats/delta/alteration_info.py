"""What a commit that altered a table is called, in Spark's words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakedbapi.formats.delta.clustering import clustered_by
from lakedbapi.formats.delta.schema import nodes, type_name
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.types import Field, List, Map, Struct, Type, children


@dataclass(frozen=True)
class Named:
    """An operation and its parameters, whose values are text, some of it JSON."""

    operation: str
    parameters: Mapping[str, str | None]


def alteration(old: TableInfo, new: TableInfo, schema_string: str) -> Named:
    """How `new` was made of `old`; `schema_string` is that of `new`."""
    checks = [{c.name: c for c in table.constraints if c.kind == "check"} for table in (old, new)]
    if checks[0] != checks[1]:
        return _constraint_change(*checks)
    if old.properties != new.properties:
        return _property_change(old.properties, new.properties)
    if old.sorting != new.sorting:
        names = (",".join(cluster_by(table)) for table in (old, new))
        return Named("CLUSTER BY", dict(zip(("oldClusteringColumns", "newClusteringColumns"), names, strict=True)))
    if old.schema != new.schema:
        return _column_change(old, new, schema_string)
    return Named("SET TBLPROPERTIES", {"properties": json.dumps({"comment": new.comment})})


def cluster_by(table: TableInfo | None) -> list[str]:
    return [] if table is None else [".".join(field.name for field in path) for path in clustered_by(table)]


def _constraint_change(old: Mapping[str | None, Any], new: Mapping[str | None, Any]) -> Named:
    for name, constraint in new.items():
        if old.get(name) != constraint:
            return Named("ADD CONSTRAINT", {"name": str(name), "expr": constraint.expression or ""})
    gone = next(name for name in old if name not in new)
    return Named("DROP CONSTRAINT", {"name": str(gone), "expr": old[gone].expression or "", "existed": "true"})


def _property_change(old: Mapping[str, str], new: Mapping[str, str]) -> Named:
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    if changed:
        return Named("SET TBLPROPERTIES", {"properties": json.dumps(changed)})
    gone = [name for name in old if name not in new]
    return Named("UNSET TBLPROPERTIES", {"properties": json.dumps(gone), "ifExists": "true"})


@dataclass(frozen=True)
class _Column:
    field: Field
    above: tuple[str, ...]

    @property
    def path(self) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" if "." in part else part for part in (*self.above, self.name))

    @property
    def name(self) -> str:
        return self.field.name


def _column_change(old: TableInfo, new: TableInfo, schema_string: str) -> Named:
    before = {column.field.id: column for column in _columns(old.schema.fields, ())}
    after = {column.field.id: column for column in _columns(new.schema.fields, ())}
    metadata = {
        id: node.get("metadata") or {} for id, node in zip(after, nodes(json.loads(schema_string)), strict=True)
    }
    added = _topmost([column for id, column in after.items() if id not in before])
    if added:
        columns = [{"column": _told(column, metadata)} for column in added]
        return Named("ADD COLUMNS", {"columns": json.dumps(columns)})
    dropped = _topmost([column for id, column in before.items() if id not in after])
    if dropped:
        return Named("DROP COLUMNS", {"columns": json.dumps([column.path for column in dropped])})
    for id, column in before.items():
        if after[id].name != column.name:
            return Named("RENAME COLUMN", {"oldColumnPath": column.path, "newColumnPath": after[id].path})
    # A field comes after the struct that changes with it.
    *_, changed = (column for id, column in after.items() if column.field != before[id].field)
    return Named("CHANGE COLUMN", {"column": json.dumps(_told(changed, metadata))})


def _columns(fields: tuple[Field, ...], above: tuple[str, ...]) -> Iterator[_Column]:
    """All, depth first."""
    for field in fields:
        yield _Column(field, above)
        yield from _columns(children(field.type), (*above, field.name))


def _topmost(columns: list[_Column]) -> list[_Column]:
    """Without those that lie in others."""
    inside = {child.field.id for column in columns for child in _columns(children(column.field.type), ())}
    return [column for column in columns if column.field.id not in inside]


def _told(column: _Column, metadata: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": column.path,
        "type": _kind(column.field.type),
        "nullable": column.field.nullable,
        "metadata": metadata[column.field.id],
    }


def _kind(type: Type) -> str:
    """Without what is in it."""
    return {Struct: "struct", List: "array", Map: "map"}.get(type.__class__) or type_name(type)
