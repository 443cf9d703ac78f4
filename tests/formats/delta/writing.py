"""Delta tables made by hand: the log line by line, with real Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

LONG = [("i", "long")]
DV = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
DV["writerFeatures"] = ["deletionVectors"]


def schema_string(columns: Sequence[tuple[str, Any]], **metadata: Mapping[str, Any]) -> str:
    fields = [
        {"name": name, "type": type, "nullable": True, "metadata": dict(metadata.get(name, {}))}
        for name, type in columns
    ]
    return json.dumps({"type": "struct", "fields": fields})


@dataclass
class Table:
    """The table in `path`; each `commit` is the next version."""

    path: Path
    version: int = -1

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    def create(
        self,
        columns: Sequence[tuple[str, Any]] = LONG,
        partitions: Sequence[str] = (),
        protocol: Mapping[str, Any] | None = None,
        id: str = "one",
        **configuration: str,
    ) -> Table:
        """Version 0. Properties are given with `_` for `.`."""
        self.log.mkdir(parents=True, exist_ok=True)
        metadata = {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(columns),
            "partitionColumns": list(partitions),
            "configuration": {name.replace("_", "."): value for name, value in configuration.items()},
            "createdTime": 1,
        }
        self.commit({"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata})
        return self

    def commit(self, *actions: Mapping[str, Any], version: int | None = None) -> int:
        self.version = self.version + 1 if version is None else version
        path = self.log / f"{self.version:020}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        # One second apart, whatever the file system's clock does.
        os.utime(path, (1_700_000_000 + self.version, 1_700_000_000 + self.version))
        return self.version

    def file(self, name: str, rows: pa.Table | Sequence[int], **fields: Any) -> dict[str, Any]:
        """The `add` of a new data file at `name`, a path that is not encoded."""
        table = rows if isinstance(rows, pa.Table) else pa.table({"i": pa.array(rows, pa.int64())})
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, row_group_size=fields.pop("row_group_size", None))
        action = {
            "path": quote(name),
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": table.num_rows}),
        }
        return {"add": {name: value for name, value in {**action, **fields}.items() if value is not None}}


def remove(add: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The `remove` of what an `add` added."""
    kept = {name: add["add"][name] for name in ("path", "partitionValues", "deletionVector") if name in add["add"]}
    return {"remove": {**kept, "dataChange": True, "deletionTimestamp": 1, **fields}}


def with_vector(add: Mapping[str, Any], descriptor: Mapping[str, Any] | None) -> dict[str, Any]:
    """The same file with another deletion vector."""
    fields = {name: value for name, value in add["add"].items() if name != "deletionVector"}
    return {"add": fields if descriptor is None else {**fields, "deletionVector": dict(descriptor)}}
