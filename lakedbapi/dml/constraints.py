"""NOT NULL and CHECK: what every new row of a table must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakedbapi.dml.target import Target
from lakedbapi.engine.base import RelationName, ScanRelation
from lakedbapi.errors import IntegrityError
from lakedbapi.model.catalog import Constraint
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field, List, Map, Type, children
from lakedbapi.query.checks import ENFORCED, violation


def verify(target: Target, rows: pa.Table) -> None:
    """IntegrityError unless `rows` (all columns of the table, in Arrow's form) satisfy the constraints of `target`."""
    for field, column in zip(target.fields, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise IntegrityError(
                f"NULL in column {target.table.name}.{field.name}, which is NOT NULL "
                f"({column.null_count} of {rows.num_rows} new rows); give a value, or drop the constraint"
            )
        if _has_required(field.type):
            for chunk in column.chunks:
                _verify_inside(field, chunk, f"{target.table.name}.{field.name}")
    checks = [c for c in target.table.constraints if c.kind in ENFORCED and c.expression]
    if checks and rows.num_rows:
        _verify_checks(target, rows, checks)


def _has_required(type: Type) -> bool:
    """Whether something in a value of the type cannot be NULL, besides the keys of maps, which never are."""
    inner = (type.value,) if isinstance(type, Map) else children(type)
    return any(not field.nullable or _has_required(field.type) for field in inner)


def _verify_inside(field: Field, values: pa.Array, path: str) -> None:
    """IntegrityError for a NULL in a struct, list or map that must not have it."""
    for inner, part in zip(children(field.type), _parts(values.drop_null(), field.type), strict=True):
        if not inner.nullable and part.null_count:
            raise IntegrityError(
                f"NULL in {path}.{inner.name}, which is NOT NULL ({part.null_count} times in new rows); give a value"
            )
        if _has_required(inner.type):
            _verify_inside(inner, part, f"{path}.{inner.name}")


def _parts(values: pa.Array, type: Type) -> Sequence[pa.Array]:
    """What `values`, of which none is NULL, consist of."""
    if isinstance(type, List):
        return [values.flatten()]
    if not isinstance(type, Map):
        found: Sequence[pa.Array] = values.flatten()
        return found
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return [part.slice(first, last - first) for part in (values.keys, values.items)]


def _verify_checks(target: Target, rows: pa.Table, checks: list[Constraint]) -> None:
    """A CHECK is violated where it is FALSE; whether NULL passes is the format's to say."""
    conditions = [violation(target.catalog, target.table, check) for check in checks]
    violated = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
    name = RelationName.local("_lake_checked")
    sql = f"SELECT {violated} FROM {name.sql} AS {quote_identifier(target.table.name)}"
    relation = ScanRelation(Scan(target.table.schema, rows=(RowGroup("checked", rows),)))
    counts = target.fetch(target.query(sql, {name: relation}))
    for check, count in zip(checks, counts.columns, strict=True):
        if count[0].as_py():
            named = f" {check.name!r}" if check.name else ""
            raise IntegrityError(
                f"CHECK constraint{named} of {target.table.name} is violated: {check.expression} "
                f"({count[0].as_py()} of {rows.num_rows} new rows); change the values, or drop the constraint"
            )
