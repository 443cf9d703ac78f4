"""SHOW CREATE TABLE: the statement that makes a table or view like the one that is there."""

from __future__ import annotations

from collections.abc import Iterator

from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import CATALOG_PLACEHOLDER, Constraint, PartitionField, SortField, TableInfo, ViewInfo
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, Identity
from lakedbapi.query.names import ResolvedTable, ResolvedView
from lakedbapi.query.stored import shown


def definition(found: ResolvedTable | ResolvedView) -> str:
    """`CREATE TABLE …` or `CREATE VIEW …` with all that the statement can say; names without the catalog."""
    return _view(found, found.info) if isinstance(found, ResolvedView) else _table(found, found.table)


def _view(place: ResolvedView, info: ViewInfo) -> str:
    sql = info.sql.replace(CATALOG_PLACEHOLDER, quote_identifier(place.alias))
    return f"CREATE VIEW {_path(place.schema.name, info.name)}{_columns(info.column_aliases)} AS {sql}"


def _table(place: ResolvedTable, table: TableInfo) -> str:
    catalog = place.view.catalog
    elements = [*map(_column, table.schema.fields), *(_constraint(catalog, table, c) for c in table.constraints)]
    lines = [f"CREATE TABLE {_path(place.schema.name, table.name)} (", ",\n".join(f"  {e}" for e in elements), ")"]
    keys = list(_partition_keys(table))
    if keys:
        lines.append(f"PARTITIONED BY ({', '.join(keys)})")
    if table.sorting:
        lines.append(f"SORTED BY ({', '.join(map(_sort_key, table.sorting))})")
    properties = catalog.settable_properties(table)
    if properties:
        pairs = (f"{quote_literal(name)} = {quote_literal(value)}" for name, value in sorted(properties.items()))
        lines.append(f"WITH ({', '.join(pairs)})")
    if table.comment is not None:
        lines.append(f"COMMENT {quote_literal(table.comment)}")
    return "\n".join(lines)


def _column(field: Field) -> str:
    parts = [quote_identifier(field.name), sql_type(field.type)]
    if not field.nullable:
        parts.append("NOT NULL")
    generated = generation(field)
    if generated is not None:
        parts.append(generated)
    elif field.default is not None:
        parts.append(f"DEFAULT {field.default}")
    if field.comment is not None:
        parts.append(f"COMMENT {quote_literal(field.comment)}")
    return " ".join(parts)


def generation(field: Field) -> str | None:
    """`GENERATED …` of a column that is computed or counted."""
    identity = field.identity
    if field.generated is not None:
        return f"GENERATED ALWAYS AS ({field.generated})"
    if identity is None:
        return None
    counting = "" if identity == Identity(always=identity.always) else f" ({identity.options})"
    return f"GENERATED {identity.generation} AS IDENTITY{counting}"


def _constraint(catalog: Catalog, table: TableInfo, constraint: Constraint) -> str:
    name = f"CONSTRAINT {quote_identifier(constraint.name)} " if constraint.name else ""
    if constraint.kind == "check":
        return f"{name}CHECK ({shown(catalog, table.schema, constraint.expression or '')})"
    text = f"{name}{constraint.kind.upper()}{_columns(constraint.columns)}"
    if constraint.kind == "foreign key":
        text += f" REFERENCES {_path(*constraint.referred)}{_columns(constraint.referred_columns)}"
    return text


def _partition_keys(table: TableInfo) -> Iterator[str]:
    names = {field.id: field.name for field in table.schema.fields}
    for key in table.partitioning.fields if table.partitioning else ():
        if key.transform != "void":
            yield _partition_key(key, quote_identifier(names[key.field_id]))


def _partition_key(key: PartitionField, column: str) -> str:
    if key.transform == "identity":
        return column
    transform, _, number = key.transform.removesuffix(")").partition("(")
    return f"{transform}({number}, {column})" if number else f"{transform}({column})"


def _sort_key(key: SortField) -> str:
    return f"{key.expression}{' DESC' if key.descending else ''}{' NULLS FIRST' if key.nulls_first else ''}"


def _path(*names: str) -> str:
    return ".".join(map(quote_identifier, names))


def _columns(names: tuple[str, ...]) -> str:
    return f" ({', '.join(map(quote_identifier, names))})" if names else ""
