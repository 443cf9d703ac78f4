"""Log files of one Parquet data block, as Hudi's log format has them: to be changed and written anew."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"#HUDI#"
_SCHEMA = 2


@dataclass
class LogFile:
    """`rows` with Hudi's own columns; `schema` is their Avro schema."""

    path: Path
    rows: pa.Table
    schema: dict[str, Any]
    _head: tuple[int, int]
    _header: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LogFile:
        data = path.read_bytes()
        version, kind, entries = struct.unpack_from(">III", data, 14)
        at, header = 26, {}
        for _ in range(entries):
            key, length = struct.unpack_from(">II", data, at)
            header[key] = data[at + 8 : at + 8 + length]
            at += 8 + length
        (length,) = struct.unpack_from(">Q", data, at)
        rows = pq.read_table(io.BytesIO(data[at + 8 : at + 8 + length]))
        return cls(path, rows, json.loads(header[_SCHEMA]), (version, kind), header)

    def write(self) -> None:
        content = io.BytesIO()
        pq.write_table(self.rows, content)
        header = {**self._header, _SCHEMA: json.dumps(self.schema).encode()}
        body = struct.pack(">III", *self._head, len(header))
        for key, value in header.items():
            body += struct.pack(">II", key, len(value)) + value
        body += struct.pack(">Q", len(content.getvalue())) + content.getvalue() + struct.pack(">I", 0)
        size = len(body) + 8
        self.path.write_bytes(MAGIC + struct.pack(">Q", size) + body + struct.pack(">Q", size + len(MAGIC)))
