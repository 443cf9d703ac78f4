"""Checkpoints: the state of a table in one Parquet file (protocol, "Checkpoints", "V1 Spec")."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakedbapi.formats.delta.columns import FILES, REMOVES, TEXT_MAP, log_name
from lakedbapi.formats.delta.intervals import milliseconds
from lakedbapi.formats.delta.log import LOG
from lakedbapi.formats.delta.schema import parse_schema, physical_names
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.struct_stats import parsed_stats
from lakedbapi.formats.delta.texts import map_values, partition_array
from lakedbapi.formats.delta.writer_features import is_true
from lakedbapi.storage.filesystem import Storage

LAST = "_last_checkpoint"
TOMBSTONES = "delta.deletedFileRetentionDuration"
_WEEK = "interval 1 week"

_TEXTS = pa.list_(pa.string())
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", _TEXTS),
        ("configuration", TEXT_MAP),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _TEXTS),
        ("writerFeatures", _TEXTS),
    ]
)
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])


def retention_of(properties: Mapping[str, str]) -> int:
    """How long removed files are kept, in milliseconds."""
    return milliseconds(properties.get(TOMBSTONES, _WEEK))


def write_checkpoint(storage: Storage, state: TableState) -> None:
    """Write the checkpoint of a committed state, then the hint that leads to it."""
    actions = checkpoint_table(state, time.time_ns() // 1_000_000)
    sink = io.BytesIO()
    pq.write_table(actions, sink, compression="snappy", store_schema=False)
    data = sink.getvalue()
    path = f"{state.root}{LOG}{state.version:020}.checkpoint.parquet"
    try:
        storage.write_exclusive(path, data)
    except FileExistsError:  # Another writer was faster, with the same content.
        return
    hint = {
        "version": state.version,
        "size": actions.num_rows,
        "sizeInBytes": len(data),
        "numOfAddFiles": state.files.num_rows,
    }
    storage.overwrite(f"{state.root}{LOG}{LAST}", json.dumps(hint, separators=(",", ":")).encode())


def checkpoint_table(state: TableState, now: int) -> pa.Table:
    """A row an action. `now` in milliseconds decides which tombstones are still to be kept."""
    parts = {
        "protocol": pa.array([state.protocol.to_json()], _PROTOCOL),
        "metaData": pa.array([_metadata(state)], _METADATA),
        "txn": pa.array([txn.to_json() for txn in state.txns.values()], _TXN),
        "domainMetadata": pa.array([domain.to_json() for domain in state.domains.values()], _DOMAIN),
        "remove": _structs(_unexpired(state, now), REMOVES),
        "add": _structs(_stats_as_wanted(state), FILES, _parsed(state)),
    }
    total = sum(len(part) for part in parts.values())
    columns = {}
    start = 0
    for name, part in parts.items():
        before, after = (pa.nulls(count, part.type) for count in (start, total - start - len(part)))
        columns[name] = pa.chunked_array([before, part, after])
        start += len(part)
    return pa.table(columns)


def _metadata(state: TableState) -> Mapping[str, Any]:
    found = state.metadata.to_json()
    found["configuration"] = list(found["configuration"].items())
    found["format"] = {**found["format"], "options": list(found["format"]["options"].items())}
    return found


def _unexpired(state: TableState, now: int) -> pa.Table:
    retention = retention_of(state.metadata.configuration)
    times = pc.fill_null(state.tombstones["deletion_timestamp"], 0)
    return state.tombstones.filter(pc.greater(times, now - retention))


def _stats_as_wanted(state: TableState) -> pa.Table:
    if state.metadata.configuration.get("delta.checkpoint.writeStatsAsJson", "true").casefold() != "false":
        return state.files
    index = state.files.schema.get_field_index("stats")
    return state.files.set_column(index, "stats", pa.nulls(state.files.num_rows, pa.string()))


def _parsed(state: TableState) -> Mapping[str, pa.Array]:
    """Typed copies of statistics and partition values, where the table asks for them."""
    metadata = state.metadata
    if not is_true(metadata.configuration, "delta.checkpoint.writeStatsAsStruct"):
        return {}
    schema, names = parse_schema(metadata.schema_string), physical_names(metadata.schema_string)
    keys = [field for name in metadata.partition_columns if (field := schema.get(name)) is not None]
    rest = [field for field in schema.fields if field not in keys]
    found = {"stats_parsed": parsed_stats(state.files["stats"], rest, names)}
    if keys:
        stored = [names.get(field.id, field.name) for field in keys]
        columns = [
            partition_array(map_values(state.files["partition_values"], name), field.type, f"column {field.name!r}")
            for name, field in zip(stored, keys, strict=True)
        ]
        found["partitionValues_parsed"] = pa.StructArray.from_arrays(columns, names=stored)
    return found


def _structs(files: pa.Table, schema: pa.Schema, more: Mapping[str, pa.Array] | None = None) -> pa.Array:
    """File actions as one struct column, named as in the log."""
    count = files.num_rows
    fields = [(name, files[name].combine_chunks()) for name in schema.names if name not in ("version", "data_change")]
    named = {log_name(name): _chunkless(array) for name, array in fields}
    named["dataChange"] = pa.array(np.zeros(count, np.bool_))
    named |= {name: _chunkless(array) for name, array in (more or {}).items()}
    return pa.StructArray.from_arrays(list(named.values()), names=list(named))


def _chunkless(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.nulls(0, array.type)])
    return array
