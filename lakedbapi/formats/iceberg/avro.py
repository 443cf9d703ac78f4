"""Avro files in memory. Manifests have few schemas, so that what is made of each is kept."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pyiceberg.avro.codecs import AVRO_CODEC_KEY
from pyiceberg.avro.codecs.deflate import DeflateCodec
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import MAGIC, META_SCHEMA, SYNC_SIZE, AvroFile, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, construct_writer, resolve_reader
from pyiceberg.avro.writer import Writer
from pyiceberg.io import InputFile
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakedbapi.formats.iceberg.client_fixes import read_doubles

Wanted = Callable[[Schema], Schema]
"""From the schema of a file to that of the records that are wanted."""

read_doubles()

_KEPT = 1024
_SCHEMA = "avro.schema"
_header_reader = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
_header_writer = construct_writer(META_SCHEMA)


def read(data: bytes, wanted: Wanted) -> tuple[Schema, list[Record]]:
    """The schema of the file, and its records as those of `wanted`, a function that has a name."""
    with _File(data, wanted) as file:
        return file.schema, list(file)


class _File(AvroFile[Record]):
    def __init__(self, data: bytes, wanted: Wanted) -> None:
        nowhere: InputFile = None  # type: ignore[assignment]
        super().__init__(nowhere)
        self.decoder = new_decoder(data)
        self.header = _header_reader.read(self.decoder)
        if _SCHEMA not in self.header.meta:
            raise ValueError("it has no schema")
        self.schema, self.reader = _resolved(self.header.meta[_SCHEMA], wanted)

    def __enter__(self) -> _File:
        return self


@lru_cache(_KEPT)
def _resolved(schema: str, wanted: Wanted) -> tuple[Schema, Reader]:
    stored = AvroSchemaConversion().avro_to_iceberg(json.loads(schema))
    return stored, resolve_reader(stored, wanted(stored))


@dataclass(frozen=True)
class Layout:
    """How records are written."""

    schema: str
    writer: Writer

    @classmethod
    def of(cls, schema: Schema, name: str) -> Layout:
        text = json.dumps(AvroSchemaConversion().iceberg_to_avro(schema, schema_name=name))
        return cls(text, construct_writer(schema))


def encode(layout: Layout, records: Sequence[Record], about: Mapping[str, str]) -> bytes:
    """A file of one block. `about` goes into its header."""
    content = io.BytesIO()
    encoder = BinaryEncoder(content)
    for record in records:
        layout.writer.write(encoder, record)
    block, length = DeflateCodec.compress(content.getvalue())
    sync = os.urandom(SYNC_SIZE)
    file = io.BytesIO()
    encoder = BinaryEncoder(file)
    meta = {**about, _SCHEMA: layout.schema, AVRO_CODEC_KEY: "deflate"}
    _header_writer.write(encoder, AvroFileHeader(MAGIC, meta, sync))
    encoder.write_int(len(records))
    encoder.write_int(length)
    encoder.write(block)
    encoder.write(sync)
    return file.getvalue()
