"""Options of a filesystem, from the text that a connection is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_PREFIX = "storage_options."


def storage_options(options: Mapping[str, str]) -> dict[str, Any]:
    """What the fsspec filesystem gets of `options`: those that begin with `storage_options.`.

    Further dots nest; `true`, `false`, JSON objects and lists become what they say.
    """
    nested: dict[str, Any] = {}
    for name, value in options.items():
        if name.startswith(_PREFIX):
            *parents, last = name[len(_PREFIX) :].split(".")
            level = nested
            for parent in parents:
                level = level.setdefault(parent, {})
            level[last] = _plain_value(value)
    return nested


def _plain_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # A key or password of digits only is text all the same.
    return value if isinstance(value, (bool, dict, list)) else text
