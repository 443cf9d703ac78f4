"""Variants in the bytes of the Parquet Variant encoding (apache/parquet-format, VariantEncoding.md), as JSON text.

Newer DuckLakes keep them so in catalogs whose database has no such type: the metadata, then the value.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_VERSION = 1
_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_UNITS = {"us": 1_000_000, "ns": 1_000_000_000}
_ENDLESS = {32: np.iinfo(np.int32).max, 64: np.iinfo(np.int64).max}


def variant_json(data: bytes) -> str:
    """The JSON text of a variant, as DuckDB casts it: dates, times, UUIDs and blobs are strings. ValueError if it is
    damaged."""
    try:
        names, end = _names(data)
        return _Reader(data, names).value(end)
    except (IndexError, struct.error, OverflowError, RecursionError) as error:
        raise ValueError(f"a variant of {len(data)} bytes is damaged: {error}") from error


def _names(data: bytes) -> tuple[list[str], int]:
    """The names of fields in the metadata, and where these end."""
    header = data[0]
    if header & 0x0F != _VERSION:
        raise ValueError(f"a variant has version {header & 0x0F}; {_VERSION} is known")
    width = (header >> 6) + 1
    count = _unsigned(data, 1, width)
    start = 1 + width
    offsets = [_unsigned(data, start + n * width, width) for n in range(count + 1)]
    text = start + (count + 1) * width
    names = [_taken(data, text + low, high - low).decode() for low, high in pairwise(offsets)]
    return names, text + offsets[-1]


@dataclass(frozen=True)
class _Reader:
    data: bytes
    names: list[str]

    def value(self, at: int) -> str:
        kind, header = self.data[at] & 0b11, self.data[at] >> 2
        if kind == _SHORT_STRING:
            return json.dumps(_taken(self.data, at + 1, header).decode(), ensure_ascii=False)
        if kind == _OBJECT:
            return self._object(at + 1, header)
        if kind == _ARRAY:
            count, offsets, start = self._children(at + 1, header, is_large=header >> 2 & 1, ids=0)
            return "[" + ",".join(self.value(start + offset) for offset in offsets[:count]) + "]"
        return _primitive(self.data, at + 1, header)

    def _object(self, at: int, header: int) -> str:
        id_width = (header >> 2 & 0b11) + 1
        is_large = header >> 4 & 1
        count, offsets, start = self._children(at, header, is_large=is_large, ids=id_width)
        first = at + (4 if is_large else 1)
        names = [self.names[_unsigned(self.data, first + n * id_width, id_width)] for n in range(count)]
        parts = (
            f"{json.dumps(name, ensure_ascii=False)}:{self.value(start + offset)}"
            for name, offset in zip(names, offsets, strict=False)
        )
        return "{" + ",".join(parts) + "}"

    def _children(self, at: int, header: int, *, is_large: int, ids: int) -> tuple[int, list[int], int]:
        """Their number and offsets, and where these count from. `ids`: bytes of the field id of each."""
        width, size = (header & 0b11) + 1, 4 if is_large else 1
        count = _unsigned(self.data, at, size)
        first = at + size + count * ids
        offsets = [_unsigned(self.data, first + n * width, width) for n in range(count + 1)]
        return count, offsets, first + (count + 1) * width


def _primitive(data: bytes, at: int, kind: int) -> str:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind in (_BINARY, _STRING):
        content = _taken(data, at + 4, _unsigned(data, at, 4))
        return json.dumps(content.decode() if kind == _STRING else _blob_text(content), ensure_ascii=False)
    if kind not in _FIXED:
        raise ValueError(f"a variant has a value of the unknown kind {kind}")
    size, text = _FIXED[kind]
    return text(_taken(data, at, size))


def _taken(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if size < 0 or len(found) < size:
        raise IndexError(f"it ends before byte {at + size}")
    return found


def _unsigned(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_taken(data, at, size), "little")


def _signed(content: bytes) -> int:
    return int.from_bytes(content, "little", signed=True)


def _integer(content: bytes) -> str:
    return str(_signed(content))


def _decimal(content: bytes) -> str:
    scale, number = content[0], _signed(content[1:])
    digits = str(abs(number)).rjust(scale + 1, "0")
    whole = digits[: len(digits) - scale]
    return ("-" if number < 0 else "") + (f"{whole}.{digits[len(digits) - scale :]}" if scale else whole)


def _float(content: bytes) -> str:
    (number,) = struct.unpack("<f" if len(content) == 4 else "<d", content)
    return json.dumps(number)


def _blob_text(content: bytes) -> str:
    """As DuckDB writes it: ASCII as it is, but for quotes and backslashes."""
    return "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\x{byte:02X}" for byte in content)


def _uuid(content: bytes) -> str:
    return json.dumps(str(uuid.UUID(bytes=content)))


def _date(content: bytes) -> str:
    days = _signed(content)
    return json.dumps(_endless(days, 32) or _day(days))


def _time(content: bytes) -> str:
    return json.dumps(_clock(_signed(content), "us"))


def _timestamp(unit: str, zone: str = "") -> Callable[[bytes], str]:
    def text(content: bytes) -> str:
        number = _signed(content)
        days, rest = divmod(number, 86_400 * _UNITS[unit])
        return json.dumps(_endless(number, 64) or f"{_day(days)} {_clock(rest, unit)}{zone}")

    return text


def _endless(number: int, bits: int) -> str | None:
    return {_ENDLESS[bits]: "infinity", -_ENDLESS[bits]: "-infinity"}.get(number)


def _day(days: int) -> str:
    text = str(np.datetime64(days, "D"))
    year, month, day = text.rsplit("-", 2)
    return text if int(year) > 0 else f"{1 - int(year):04}-{month}-{day} (BC)"


def _clock(number: int, unit: str) -> str:
    seconds, rest = divmod(number, _UNITS[unit])
    fraction = f".{rest:0{len(str(_UNITS[unit])) - 1}}".rstrip("0") if rest else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


_BINARY, _STRING = 15, 16
_CONSTANTS = {0: "null", 1: "true", 2: "false"}
_FIXED: Mapping[int, tuple[int, Callable[[bytes], str]]] = {
    3: (1, _integer),
    4: (2, _integer),
    5: (4, _integer),
    6: (8, _integer),
    7: (8, _float),
    8: (5, _decimal),
    9: (9, _decimal),
    10: (17, _decimal),
    11: (4, _date),
    12: (8, _timestamp("us", "+00")),
    13: (8, _timestamp("us")),
    14: (4, _float),
    17: (8, _time),
    18: (8, _timestamp("ns", "+00")),
    19: (8, _timestamp("ns")),
    20: (16, _uuid),
}
"""Bytes and reader of each kind of primitive value that has a fixed size."""
