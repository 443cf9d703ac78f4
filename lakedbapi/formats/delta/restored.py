"""The schema that a table gets back from an earlier version, with its columns as they are mapped now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.delta.actions import Metadata
from lakedbapi.formats.delta.schema import ID, PHYSICAL_NAME
from lakedbapi.formats.delta.writer_features import mapping_mode


def restored_schema(earlier: Metadata, current: Metadata) -> str:
    """The `schemaString` of `earlier` for a table that is `current` now.

    A column is the one that has its name in files, since versions may number them differently: those before columns
    were mapped do not at all. NotSupportedError for a column that is gone and has no number of its own.
    """
    tree = json.loads(earlier.schema_string)
    was_mapped, is_mapped = (mapping_mode(metadata.configuration) != "none" for metadata in (earlier, current))
    if not (was_mapped or is_mapped):
        return earlier.schema_string
    known = {}
    if is_mapped:
        known = {path: field["metadata"][ID] for path, field in _columns(json.loads(current.schema_string), (), True)}
    for path, field in list(_columns(tree, (), was_mapped)):
        own = field.setdefault("metadata", {})
        id = known.get(path, own.get(ID) if was_mapped else None)
        if is_mapped and (id is None or (path not in known and id in known.values())):
            raise NotSupportedError(
                f"column {field['name']!r} cannot be restored: it is none of the columns of the table now, whose names "
                "in files were told apart only after that version; CREATE TABLE … AS SELECT * FROM … FOR VERSION AS OF "
                "… makes a table of it"
            )
        own.pop(ID, None)
        own.pop(PHYSICAL_NAME, None)
        if is_mapped:
            own |= {ID: id, PHYSICAL_NAME: path[-1]}
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _columns(type: Any, above: tuple[str, ...], is_mapped: bool) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """All fields of structs, each with the path of its names in files."""
    if not isinstance(type, dict):
        return
    if type["type"] == "struct":
        for field in type["fields"]:
            name = (field.get("metadata") or {}).get(PHYSICAL_NAME) if is_mapped else None
            path = (*above, name or field["name"])
            yield path, field
            yield from _columns(field["type"], path, is_mapped)
    for part in ("elementType", "keyType", "valueType"):
        yield from _columns(type.get(part), (*above, part), is_mapped)
