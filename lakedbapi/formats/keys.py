"""Primary, unique and foreign keys as information in a property of a table, of formats that have no place for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakedbapi.model.catalog import Constraint

PROPERTY = "lakedbapi.keys"


def print_keys(constraints: Sequence[Constraint]) -> str | None:
    """The value of the property; None when there are no keys."""
    stated = [
        {
            "kind": key.kind,
            "name": key.name,
            "columns": key.columns,
            "referred": key.referred,
            "referred_columns": key.referred_columns,
        }
        for key in constraints
        if key.kind in ("primary key", "unique", "foreign key")
    ]
    return json.dumps(stated, ensure_ascii=False, separators=(",", ":")) if stated else None


def parse_keys(text: str | None) -> tuple[Constraint, ...]:
    """What `print_keys` wrote; nothing from a text that it did not write."""
    try:
        stated: list[dict[str, Any]] = json.loads(text or "[]")
        return tuple(
            Constraint(
                key["kind"],
                key["name"],
                tuple(key["columns"]),
                tuple(key["referred"]),
                tuple(key["referred_columns"]),
            )
            for key in stated
        )
    except (ValueError, TypeError, KeyError):
        return ()
