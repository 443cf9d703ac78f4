"""ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.types import Field
from lakedbapi.sql.columns import (
    CONSTRAINT_WORDS,
    read_column,
    read_constraint,
    read_default,
    read_partition_keys,
    read_properties,
    read_property_name,
    read_sort_keys,
)
from lakedbapi.sql.expressions import expression
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.refs import at_ref, read_ref
from lakedbapi.sql.statements import (
    AddColumn,
    AddConstraint,
    AlterAction,
    AlterColumn,
    AlterTable,
    DropColumn,
    DropConstraint,
    DropRef,
    Position,
    PutRef,
    RenameColumn,
    RenameTable,
    SetPartitioning,
    SetProperties,
    SetSorting,
)
from lakedbapi.sql.tokens import WORD
from lakedbapi.sql.types import read_type


def read_alter(reader: Reader) -> AlterTable | PutRef | DropRef:
    """`ALTER TABLE t action, action …`, or one change of a branch or tag."""
    reader.expect("alter")
    view = reader.accept("view")
    if not view:
        reader.expect("table")
    if_exists = reader.accept("if", "exists")
    name = reader.name("the name of a view" if view else "the name of a table")
    if at_ref(reader) and not view:
        return read_ref(reader, name)
    actions = tuple(action for item in reader.items(typed=True) for action in _action(item))
    if not actions:
        raise reader.error("expected ADD, DROP, RENAME, ALTER, SET, RESET or CLUSTER BY")
    return AlterTable(name, actions, if_exists, view)


def _action(reader: Reader) -> tuple[AlterAction, ...]:
    if reader.accept("add"):
        actions = _add(reader)
    elif reader.accept("drop"):
        actions = _drop(reader)
    elif reader.accept("rename"):
        actions = (_rename(reader),)
    elif reader.accept("alter"):
        actions = (_alter_column(reader),)
    elif reader.accept("set"):
        actions = (_set(reader),)
    elif reader.accept("cluster", "by"):
        actions = (SetSorting(() if reader.accept("none") else read_sort_keys(reader)),)
    elif reader.accept("reset") or reader.accept("unset"):
        actions = (_reset(reader),)
    else:
        raise reader.error("expected ADD, DROP, RENAME, ALTER, SET, RESET or CLUSTER BY")
    reader.expect_end()
    return actions


def _add(reader: Reader) -> tuple[AlterAction, ...]:
    """A column with a constraint of its own adds both."""
    if reader.peek().key in CONSTRAINT_WORDS:
        return (AddConstraint(read_constraint(reader)),)
    if not reader.accept("columns"):
        reader.accept("column")
    if_not_exists = reader.accept("if", "not", "exists")
    if reader.at("("):
        items = reader.bracketed().items(typed=True)
        return tuple(action for item in items for action in _add_column(item, if_not_exists))
    return _add_column(reader, if_not_exists)


def _add_column(reader: Reader, if_not_exists: bool) -> tuple[AlterAction, ...]:
    path = []
    while reader.peek(1).key == ".":
        path.append(reader.identifier("a column name"))
        reader.expect(".")
    position = _position_at_end(reader)
    field, constraints = read_column(reader)
    if path and constraints:
        raise NotSupportedError("a field of a struct cannot have a key or a CHECK of its own")
    reader.expect_end()
    return (AddColumn(tuple(path), field, if_not_exists, position), *map(AddConstraint, constraints))


def _position_at_end(reader: Reader) -> Position | None:
    """`FIRST` or `AFTER c` behind a column that is described; the reader is left without it."""
    tokens = reader.tokens
    if tokens[-1].key == "first" and tokens[-1].kind == WORD:
        count = 1
    elif len(tokens) > 1 and tokens[-2].key == "after" and tokens[-2].kind == WORD and tokens[-1].is_identifier:
        count = 2
    else:
        return None
    position = _position(reader.part(len(tokens) - count, len(tokens)))
    reader.tokens = tokens[:-count]
    return position


def _position(reader: Reader) -> Position | None:
    if reader.accept("first"):
        return Position()
    return Position(reader.identifier("a column name")) if reader.accept("after") else None


def _drop(reader: Reader) -> tuple[AlterAction, ...]:
    if reader.accept("constraint"):
        if_exists = reader.accept("if", "exists")
        actions: list[AlterAction] = [DropConstraint(reader.identifier("the name of a constraint"), if_exists)]
    else:
        if not reader.accept("columns"):
            reader.accept("column")
        if_exists = reader.accept("if", "exists")
        items = reader.bracketed().items() if reader.at("(") else [reader]
        actions = [DropColumn(item.path("a column name"), if_exists) for item in items]
    if not reader.accept("cascade"):
        reader.accept("restrict")
    return tuple(actions)


def _rename(reader: Reader) -> AlterAction:
    if reader.accept("to"):
        return RenameTable(reader.identifier("the new name"))
    reader.accept("column")
    path = reader.path("a column name")
    reader.expect("to")
    return RenameColumn(path, reader.identifier("the new name"))


def _alter_column(reader: Reader) -> AlterColumn:
    reader.accept("column")
    path = reader.path("a column name")
    if reader.accept("set", "default"):
        value = reader.part(reader.position, len(reader.tokens))
        read_default(reader)
        return AlterColumn(path, set_default=expression(value))
    if reader.accept("drop", "default"):
        return AlterColumn(path, drop_default=True)
    if reader.accept("set", "not", "null"):
        return AlterColumn(path, nullable=False)
    if reader.accept("drop", "not", "null"):
        return AlterColumn(path, nullable=True)
    position = _position(reader)
    if position is not None:
        return AlterColumn(path, position=position)
    reader.accept("set", "data")
    reader.expect("type")
    type = read_type(reader)
    if reader.at("using"):
        raise NotSupportedError(
            "ALTER … TYPE … USING is not supported: add a column, UPDATE it, drop the old one and rename"
        )
    return AlterColumn(path, type=Field(path[-1], type))


def _set(reader: Reader) -> AlterAction:
    if reader.accept("partitioned", "by"):
        return SetPartitioning(read_partition_keys(reader))
    if reader.accept("sorted", "by"):
        return SetSorting(read_sort_keys(reader))
    reader.accept("tblproperties")
    return SetProperties(read_properties(reader))


def _reset(reader: Reader) -> AlterAction:
    if reader.accept("partitioned", "by"):
        return SetPartitioning(())
    if reader.accept("sorted", "by"):
        return SetSorting(())
    reader.accept("tblproperties")
    reader.accept("if", "exists")
    names = []
    for item in reader.bracketed().items():
        names.append(read_property_name(item))
        item.expect_end()
    return SetProperties(tuple((name, None) for name in names))
