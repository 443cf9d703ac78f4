"""Which types a column can be changed to: those that hold every value of the old one."""

from __future__ import annotations

from dataclasses import replace

from lakedbapi.ddl.paths import with_children
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Field, List, Map, Struct, Type, children
from lakedbapi.model.widening import is_wider


def widened(field: Field, new: Type, *, to_decimals: bool) -> Field:
    """The field with the type `new`, fields in it keeping their ids. NotSupportedError when that is not wider.

    `to_decimals`: whether integers may become decimals, and decimals get a larger scale.
    """
    old = field.type
    if _same_kind(old, new):
        fields = children(field.type)
        others = children(new)
        if [f.name.casefold() for f in fields] != [f.name.casefold() for f in others]:
            raise NotSupportedError(
                f"the fields of {field.name!r} cannot be changed by a new type: "
                "use ALTER TABLE … ADD, DROP or RENAME COLUMN with the path of the field"
            )
        inner = (widened(f, o.type, to_decimals=to_decimals) for f, o in zip(fields, others, strict=True))
        return with_children(field, tuple(inner))
    if not is_wider(old, new, to_decimals=to_decimals):
        raise NotSupportedError(
            f"{field.name!r} cannot be changed from {sql_type(old)} to {sql_type(new)}: data files keep their type, "
            "and not all of its values fit. Add a column, UPDATE it, DROP the old one and RENAME the new one"
        )
    return replace(field, type=new)


def _same_kind(old: Type, new: Type) -> bool:
    return isinstance(old, (Struct, List, Map)) and type(old) is type(new)
