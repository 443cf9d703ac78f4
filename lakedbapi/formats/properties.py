"""Values in the properties of tables, which any writer can set to anything."""

from __future__ import annotations

from collections.abc import Mapping

from lakedbapi.errors import ProgrammingError


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """ProgrammingError, which tells the way out, when another writer left something else there."""
    text = properties.get(name)
    try:
        return default if text is None else int(text)
    except ValueError as error:
        raise ProgrammingError(
            f"the table's property {name} is {text!r}, which is no whole number: ALTER TABLE … SET ('{name}' = '…')"
        ) from error
