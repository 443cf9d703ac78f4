"""How a table's column is found in files, at every level of nesting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakedbapi.engine.duckdb.footers import FileSchema, Node
from lakedbapi.model.scan import FIELD_ID, NAME, POSITION, FileGroup
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, List, Map, Scalar, Schema, Struct, Type

Find = Callable[[Field, Sequence[Node]], "Node | None"]


@dataclass(frozen=True)
class Mapped:
    """A column as `read_parquet` is to read it, and what to make of it.

    `key` finds it in the file (a field id, or a quoted name), `default` is its value as text where a file lacks it.
    """

    key: str
    read_type: str
    default: str | None
    expression: str


def needs_footers(schema: Schema, group: FileGroup) -> bool:
    """Whether the files' own schemas matter: `read_parquet` finds columns by id itself, but not fields of structs."""
    if group.match == POSITION or group.names_without_ids is not None:
        return True
    return any(_has_struct(f.type) for f in schema.fields)


def found_in(schema: FileSchema, group: FileGroup) -> FileGroup:
    """The group as files with this schema are to be read: by the names for files without ids, if they have none."""
    if group.names_without_ids is None or any(node.has_ids for node in schema.columns):
        return group
    return replace(group, match=NAME, embedded=frozenset())


def map_field(field: Field, read: str, group: FileGroup, schema: FileSchema | None) -> Mapped:
    """`read` is the quoted name that the column gets in the `read_parquet`."""
    node, read_type = _locate(field, group, schema)
    if node is not None and _has_struct(field.type) and not _fits(field, node, _finder(group)):
        return Mapped(_key(field, group, node), read_type, None, _convert(read, field.type, node, _finder(group), 0))
    if field.type == Scalar("json"):
        return Mapped(_key(field, group, node), "VARCHAR", field.initial_default, f"CAST({read} AS JSON)")
    return Mapped(_key(field, group, node), sql_type(field.type), field.initial_default, read)


def _locate(field: Field, group: FileGroup, schema: FileSchema | None) -> tuple[Node | None, str]:
    """The file's column and its type, if the file was looked at and has the column."""
    if schema is None:
        return None, ""
    if group.match == POSITION:
        # Files that are read by position have the columns of the table in order, which are numbered from 1.
        index = field.id - 1
        return (schema.columns[index], schema.types[index]) if index < len(schema.columns) else (None, "")
    node = _finder(group)(field, schema.columns)
    return (None, "") if node is None else (node, schema.types[schema.columns.index(node)])


def _key(field: Field, group: FileGroup, node: Node | None) -> str:
    if group.match == FIELD_ID:
        return str(field.id)
    if group.match == POSITION:
        return quote_literal(node.name if node is not None else f"_lake_absent_{field.id}")
    if node is not None:
        return quote_literal(node.name)
    # Files that were not looked at have the one name that their group says.
    return quote_literal(
        next(iter(() if group.names_without_ids else _names(field, group)), f"_lake_absent_{field.id}")
    )


def _names(field: Field, group: FileGroup) -> Sequence[str]:
    """What the field may be called, best first. A group with names names all fields that its files have."""
    if group.names_without_ids is not None:
        return group.names_without_ids.get(field.id, ())
    if not group.names:
        return (field.name,)
    return (group.names[field.id],) if field.id in group.names else ()


def _finder(group: FileGroup) -> Find:
    def by_id(field: Field, nodes: Sequence[Node]) -> Node | None:
        return next((node for node in nodes if node.field_id == field.id), None)

    def by_name(field: Field, nodes: Sequence[Node]) -> Node | None:
        names = [name.casefold() for name in _names(field, group)]
        return next((node for name in names for node in nodes if node.name.casefold() == name), None)

    assert group.match in (FIELD_ID, NAME, POSITION)
    return by_id if group.match == FIELD_ID else by_name


def _has_struct(type: Type) -> bool:
    if isinstance(type, Struct):
        return True
    if isinstance(type, List):
        return _has_struct(type.element.type)
    if isinstance(type, Map):
        return _has_struct(type.key.type) or _has_struct(type.value.type)
    return False


def _fits(field: Field, node: Node, find: Find) -> bool:
    """Whether finding the fields of structs by name, as a cast does, gives the same as finding them by `find`."""
    type = field.type
    if isinstance(type, Struct):
        return all(_field_fits(f, node.children, find) for f in type.fields)
    return all(_fits(child, inner, find) for child, inner in _inner(type, node))


def _field_fits(field: Field, nodes: Sequence[Node], find: Find) -> bool:
    found = find(field, nodes)
    named = next((node for node in nodes if node.name.casefold() == field.name.casefold()), None)
    if found is None:
        return named is None and field.initial_default is None
    return found is named and _fits(field, found, find)


def _inner(type: Type, node: Node) -> Sequence[tuple[Field, Node]]:
    if isinstance(type, List) and node.children:
        return [(type.element, node.children[0])]
    if isinstance(type, Map) and len(node.children) == 2:
        return [(type.key, node.children[0]), (type.value, node.children[1])]
    return []


def _convert(value: str, type: Type, node: Node, find: Find, depth: int) -> str:
    """SQL for `value`, which has the file's type, as `type`. NULL stays NULL at every level."""
    if not _has_struct(type):
        return f"CAST({value} AS {sql_type(type)})"
    if isinstance(type, Struct):
        parts = [f"{quote_identifier(f.name)} := {_child(value, f, node, find, depth)}" for f in type.fields]
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"
    variable = f"_lake_x{depth}"
    if isinstance(type, List):
        inner = _convert(variable, type.element.type, node.children[0], find, depth + 1)
        return f"list_transform({value}, lambda {variable}: {inner})"
    assert isinstance(type, Map)
    key = _convert(variable, type.key.type, node.children[0], find, depth + 1)
    item = _convert(variable, type.value.type, node.children[1], find, depth + 1)
    return (
        f"CASE WHEN {value} IS NULL THEN NULL ELSE map(list_transform(map_keys({value}), lambda {variable}: {key}),"
        f" list_transform(map_values({value}), lambda {variable}: {item})) END"
    )


def _child(value: str, field: Field, node: Node, find: Find, depth: int) -> str:
    found = find(field, node.children)
    if found is None:
        default = "NULL" if field.initial_default is None else quote_literal(field.initial_default)
        return f"CAST({default} AS {sql_type(field.type)})"
    return _convert(f"struct_extract({value}, {quote_literal(found.name)})", field.type, found, find, depth)
