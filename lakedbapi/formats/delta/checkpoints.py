"""Checkpoints: the state of a table at a version, as Parquet files, or (v2) a JSON or Parquet file with sidecars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi.errors import DataError, OperationalError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import ADDS, REMOVES, from_struct
from lakedbapi.formats.delta.commits import Actions, parse_commits
from lakedbapi.formats.delta.log import LOG, Checkpoint
from lakedbapi.formats.delta.struct_stats import with_json_stats
from lakedbapi.storage.filesystem import Storage

_KINDS = frozenset({"add", "remove", "metaData", "protocol", "txn", "domainMetadata", "sidecar"})
SIDECARS = "_sidecars/"
_STRUCT_STATS = "add.stats_parsed."


def read_checkpoint(storage: Storage, root: str, checkpoint: Checkpoint) -> Actions:
    """The actions of a checkpoint; DataError when a file of it is damaged."""
    top, tables = _read_top(storage, checkpoint)
    tables = [*tables, *(_read(storage, sidecar_path(root, path)) for path in top.sidecars)]
    adds = [top.adds, *(from_struct(table["add"], ADDS) for table in tables if "add" in table.schema.names)]
    removes = [
        top.removes,
        *(from_struct(table["remove"], REMOVES) for table in tables if "remove" in table.schema.names),
    ]
    return replace(
        top, adds=_without_version(pa.concat_tables(adds)), removes=_without_version(pa.concat_tables(removes))
    )


def sidecars_of(storage: Storage, root: str, checkpoint: Checkpoint) -> Sequence[str]:
    """The full paths of the files that have a checkpoint's file actions, if it is of the v2 kind."""
    top, _ = _read_top(storage, checkpoint)
    return [sidecar_path(root, path) for path in top.sidecars]


def _read_top(storage: Storage, checkpoint: Checkpoint) -> tuple[Actions, Sequence[pa.Table]]:
    """The actions of the checkpoint's own files, and what of them has to be looked through for file actions."""
    first = checkpoint.files[0]
    if first.name.endswith(".json"):
        return parse_commits([(checkpoint.version, first.path, storage.read_bytes(first.path))]), ()
    tables = [_read(storage, file.path) for file in checkpoint.files]
    return _few_actions(tables), tables


def sidecar_path(root: str, path: str) -> str:
    """The full path of a sidecar, of which a checkpoint may tell a whole path: one of before the table was copied, or
    in the words of another filesystem. All lie in one directory (protocol, "Sidecar File Information")."""
    return f"{root}{LOG}{SIDECARS}{unquote(path.rpartition('/')[2])}"


def _read(storage: Storage, path: str) -> pa.Table:
    """The columns of a checkpoint file; `add.stats` is made from `add.stats_parsed` where only that is there."""
    try:
        with storage.filesystem.open(path, "rb") as source, pq.ParquetFile(source) as file:
            leaves = [file.schema.column(number).path for number in range(len(file.schema))]
            table = file.read(columns=[leaf for leaf in leaves if _is_wanted(leaf)])
            if "add" in table.schema.names and any(leaf.startswith(_STRUCT_STATS) for leaf in leaves):
                table = with_json_stats(table, lambda: file.read(columns=[_STRUCT_STATS.rstrip(".")])["add"])
            return table
    except OSError as error:
        raise OperationalError(f"{path}: reading the checkpoint failed: {error}") from error
    except pa.ArrowException as error:
        raise DataError(f"{path}: the checkpoint is no readable Parquet file: {error}") from error


def _is_wanted(leaf: str) -> bool:
    """Typed copies of what is there as text are not read: they may be wide."""
    top = leaf.split(".")[0]
    return top in _KINDS and not leaf.startswith((_STRUCT_STATS, "add.partitionValues_parsed.", "remove.stats"))


def _few_actions(tables: Sequence[pa.Table]) -> Actions:
    protocols = [_clean(row) for row in _rows(tables, "protocol")]
    metadata = [_clean(row) for row in _rows(tables, "metaData")]
    txns = [Txn.from_json(row) for row in _rows(tables, "txn")]
    domains = [DomainMetadata.from_json(row) for row in _rows(tables, "domainMetadata")]
    return Actions(
        protocol=Protocol.from_json(protocols[-1]) if protocols else None,
        metadata=Metadata.from_json(metadata[-1]) if metadata else None,
        txns={txn.app_id: txn for txn in txns},
        domains={domain.domain: domain for domain in domains},
        sidecars=tuple(row["path"] for row in _rows(tables, "sidecar")),
    )


def _rows(tables: Sequence[pa.Table], name: str) -> list[dict[str, Any]]:
    """The actions of one kind, of which there are few."""
    found: list[dict[str, Any]] = []
    for table in tables:
        if name in table.schema.names:
            column = table[name]
            found += [row for row in column.filter(column.is_valid()).to_pylist() if row is not None]
    return found


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """As the JSON of the log has it: without NULLs, maps as objects."""
    action: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            action[name] = _clean(value)
        elif isinstance(value, list) and value and isinstance(value[0], tuple):
            action[name] = dict(value)
        elif isinstance(value, list) and not value and name in ("configuration", "options"):
            action[name] = {}
        elif value is not None:
            action[name] = value
    return action


def _without_version(table: pa.Table) -> pa.Table:
    """A checkpoint does not tell which commits its actions are from."""
    index = table.schema.get_field_index("version")
    return table.set_column(index, table.schema.field(index), pa.nulls(table.num_rows, pa.int64()))
