"""What COPY tells about the files it wrote, as model values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakedbapi.engine.base import WriteOptions
from lakedbapi.engine.duckdb.partitioning import Key, without_null_text
from lakedbapi.model.changes import FileStats, WrittenFile
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field, List, Map, Struct


def leaf_ids(fields: Sequence[Field], layout: FileLayout) -> Mapping[str, int]:
    """Field ids of the leaf columns by path, as COPY spells it: `"s"."x"`."""
    leaves: dict[str, int] = {}
    for field in fields:
        _collect(field, quote_identifier(layout.name(field)), layout, leaves)
    return leaves


def _collect(field: Field, path: str, layout: FileLayout, leaves: dict[str, int]) -> None:
    type = field.type
    if isinstance(type, Struct):
        for child in type.fields:
            _collect(child, f"{path}.{quote_identifier(layout.name(child))}", layout, leaves)
    elif isinstance(type, List):
        _collect(type.element, f'{path}."element"', layout, leaves)
    elif isinstance(type, Map):
        _collect(type.key, f'{path}."key"', layout, leaves)
        _collect(type.value, f'{path}."value"', layout, leaves)
    else:
        leaves[path] = field.id


def written_file(
    record: Mapping[str, object], leaves: Mapping[str, int], keys: Sequence[Key], options: WriteOptions, row_ids: bool
) -> WrittenFile:
    """`record` is a row of COPY … RETURN_STATS by column name."""
    count, size, footer = record["count"], record["file_size_bytes"], record["footer_size_bytes"]
    assert isinstance(count, int)
    assert isinstance(size, int)
    assert isinstance(footer, int)
    statistics = record["column_statistics"]
    assert isinstance(statistics, dict)
    top_level = {path for path in leaves if '"."' not in path}
    stats = {
        leaves[path]: _file_stats(values, count if path in top_level else None)
        for path, values in statistics.items()
        if path in leaves
    }
    partition = record["partition_keys"] or {}
    assert isinstance(partition, dict)
    extra, key = record.get("extra_info"), record.get("encryption_key")
    groups = extra.get("row_group_count") if isinstance(extra, dict) else None
    return WrittenFile(
        path=str(record["filename"]),
        record_count=count,
        file_size_bytes=size,
        footer_size=footer,
        stats=stats,
        partition_id=None if options.partitioning is None else options.partitioning.id,
        partition_values=tuple(_partition_value(partition[key.name], options) for key in keys),
        has_row_ids=row_ids,
        row_group_count=None if groups is None else int(groups),
        encryption_key=None if key is None else str(key),
        layout=options.layout,
    )


def _partition_value(text: str | None, options: WriteOptions) -> str | None:
    return text if options.layout.partition_columns else without_null_text(text)


def _file_stats(values: Mapping[str, str], rows: int | None) -> FileStats:
    """`rows` is the number of values of a top-level column, which older versions do not report."""
    nulls = _number(values.get("null_count"))
    total = _number(values.get("num_values")) if "num_values" in values else rows
    return FileStats(
        lower=_bound(values.get("min")),
        upper=_bound(values.get("max")),
        null_count=nulls,
        value_count=None if total is None or nulls is None else total - nulls,
        has_nan=_flag(values.get("has_nan")),
        size_bytes=_number(values.get("column_size_bytes")),
        exact=(_flag(values.get("min_is_exact")), _flag(values.get("max_is_exact"))),
    )


def _bound(text: str | None) -> str | None:
    """A bound with a NUL byte cannot be stored by every catalog, and readers cut it there."""
    return None if text is None or "\0" in text else text


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _flag(text: str | None) -> bool | None:
    return None if text is None else text == "true"
