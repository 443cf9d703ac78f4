"""Defaults of columns with fields inside: when the fields change, the values follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.ddl.evolve import evolved_value
from lakedbapi.ddl.paths import with_children
from lakedbapi.ddl.values import initial_value
from lakedbapi.engine.base import Query, RelationName, ScanRelation
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.arrow import arrow_schema, arrow_type
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, Schema, children
from lakedbapi.query.constants import is_constant
from lakedbapi.sql.expressions import parse_expression


def with_followed_defaults(context: Context, old: TableInfo, new: TableInfo) -> TableInfo:
    """`new`, a later version of `old`, with its defaults in the fields that it has now.

    NotSupportedError when a default that has no one value would have to change.
    """
    return replace(new, schema=Schema(_all_followed(context, old.schema.fields, new.schema.fields)))


def _all_followed(context: Context, old: Sequence[Field], new: Sequence[Field]) -> tuple[Field, ...]:
    by_id = {field.id: field for field in old}
    return tuple(_followed(context, by_id[field.id], field) if field.id in by_id else field for field in new)


def _followed(context: Context, old: Field, new: Field) -> Field:
    if _shape(old) == _shape(new):
        return new
    changed = with_children(new, _all_followed(context, children(old.type), children(new.type)))
    if new.default is not None:
        changed = replace(changed, default=_default(context, old, new))
    if new.initial_default is not None:
        value = evolved_value(initial_value(context, old), old, new, lambda field: initial_value(context, field))
        changed = replace(changed, initial_default=_text(context, new, value))
    return changed


def _shape(field: Field) -> tuple[object, ...]:
    return tuple((child.id, child.name, _shape(child)) for child in children(field.type))


def _default(context: Context, old: Field, new: Field) -> str:
    """The default of `old` as an expression that has the type of `new`."""
    assert old.default is not None
    tree = parse_expression(old.default)
    if tree is None or not is_constant(tree):
        raise NotSupportedError(
            f"the fields of {old.name!r} cannot change under its default {old.default}, which has no one value: "
            "ALTER COLUMN … DROP DEFAULT first, and set it anew afterwards"
        )
    query = Query(f"SELECT CAST(({old.default}\n) AS {sql_type(old.type)})")
    value = context.engine.fetch(query).column(0).cast(arrow_type(old.type))[0]
    text = _text(context, new, evolved_value(value, old, new, lambda field: initial_value(context, field)))
    return "NULL" if text is None else f"CAST({quote_literal(text)} AS {sql_type(new.type)})"


def _text(context: Context, field: Field, value: pa.Scalar) -> str | None:
    """The value as text that can be cast to its type."""
    schema = Schema((field,))
    rows = pa.table([pa.repeat(value, 1)], schema=arrow_schema(schema))
    name = RelationName.local("_lake_default")
    sql = f"SELECT CAST({quote_identifier(field.name)} AS VARCHAR) FROM {name.sql}"
    relation = ScanRelation(Scan(schema, rows=(RowGroup("default", rows),)))
    text: str | None = context.engine.fetch(Query(sql, {name: relation})).column(0)[0].as_py()
    return text
