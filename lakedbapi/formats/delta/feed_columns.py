"""Whether rows of earlier versions of a table can be told in the columns that it has later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lakedbapi.formats.delta.actions import Metadata
from lakedbapi.formats.delta.schema import parse_schema, physical_names
from lakedbapi.formats.delta.writer_features import mapping_mode
from lakedbapi.model.types import Field, Type, children
from lakedbapi.model.widening import is_wider

_Path = tuple[str, ...]
"""The names in files that lead to a field."""


def lost_in(later: Metadata, earlier: Metadata) -> str | None:
    """Why files of `earlier`, read as files of `later`, would have other values than were written; None if they do not.

    Columns that came, went or were renamed are no reason, unless there is none left: then it is another table.
    """
    before, after = _types(earlier), _types(later)
    shared = before.keys() & after.keys()
    if not shared:
        return "they have no column in common"
    if _partitioning(earlier) != _partitioning(later):
        return "they are partitioned by other columns"
    changed = sorted(path for path in shared if not _holds(after[path], before[path]))
    return f"the type of column {'.'.join(changed[0])!r} does not hold its values of then" if changed else None


def _types(metadata: Metadata) -> Mapping[_Path, Type]:
    return dict(_paths(parse_schema(metadata.schema_string).fields, _names(metadata), ()))


def _paths(fields: Iterable[Field], names: Mapping[int, str], above: _Path) -> Iterator[tuple[_Path, Type]]:
    for field in fields:
        path = (*above, names.get(field.id, field.name).casefold())
        yield path, field.type
        yield from _paths(children(field.type), names, path)


def _partitioning(metadata: Metadata) -> set[str]:
    """What the partition columns are called in the log, where case matters."""
    names = _names(metadata)
    schema = parse_schema(metadata.schema_string)
    found = (schema.get(column) for column in metadata.partition_columns)
    return {names.get(field.id, field.name) for field in found if field is not None}


def _names(metadata: Metadata) -> Mapping[int, str]:
    return {} if mapping_mode(metadata.configuration) == "none" else physical_names(metadata.schema_string)


def _holds(new: Type, old: Type) -> bool:
    if children(new) or children(old):
        return type(new) is type(old)
    return is_wider(old, new, to_decimals=True)
