"""Thrift's compact protocol, as far as the metadata of Parquet files need it: structs to values and back.

A struct is a dict of its fields by number, ascending, each `(type, value)`; a list is `(type of its elements, values)`.
"""

from __future__ import annotations

import struct as binary
from collections.abc import Sequence
from typing import Any, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12

Struct: TypeAlias = dict[int, tuple[int, Any]]
ListValue: TypeAlias = tuple[int, Sequence[Any]]


class Incomplete(ValueError):
    """The bytes end within the struct."""


class Malformed(ValueError):
    """The bytes are no struct that Parquet knows."""


def parse(data: bytes | bytearray | memoryview, start: int = 0) -> tuple[Struct, int]:
    """The struct that begins at `start`, and where it ends. Raises Incomplete or Malformed."""
    reader = _Reader(data, start)
    try:
        return reader.struct(), reader.position
    except IndexError:
        raise Incomplete("the bytes end within the struct") from None


def serialize(fields: Struct) -> bytes:
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes | bytearray | memoryview, position: int) -> None:
        self._data = data
        self.position = position

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while header := self._byte():
            delta, type = header >> 4, header & 15
            number = number + delta if delta else _unzigzag(self._varint())
            fields[number] = type, self._value(type)
        return fields

    def _byte(self) -> int:
        value = self._data[self.position]
        self.position += 1
        return value

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7
            if shift > 63:
                raise Malformed("a number has more than 64 bits")

    def _bytes(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise IndexError
        value = bytes(self._data[self.position : end])
        self.position = end
        return value

    def _value(self, type: int) -> Any:
        if type in (TRUE, FALSE):
            return type == TRUE
        if type == BYTE:
            return self._byte()
        if type in (I16, I32, I64):
            return _unzigzag(self._varint())
        if type == DOUBLE:
            return binary.unpack("<d", self._bytes(8))[0]
        if type == BINARY:
            return self._bytes(self._varint())
        if type in (LIST, SET):
            return self._list()
        if type == STRUCT:
            return self.struct()
        raise Malformed(f"a field has the type {type}")

    def _list(self) -> ListValue:
        header = self._byte()
        count, type = header >> 4, header & 15
        if count == 15:
            count = self._varint()
        if type in (TRUE, FALSE):
            return type, [self._byte() == TRUE for _ in range(count)]
        return type, [self._value(type) for _ in range(count)]


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (type, value) in fields.items():
        if type in (TRUE, FALSE):
            type = TRUE if value else FALSE
        delta = number - last
        if 0 < delta < 16:
            out.append(delta << 4 | type)
        else:
            out.append(type)
            _write_varint(out, _zigzag(number))
        if type not in (TRUE, FALSE):
            _write_value(out, type, value)
        last = number
    out.append(0)


def _write_value(out: bytearray, type: int, value: Any) -> None:
    if type == BYTE:
        out.append(value)
    elif type in (I16, I32, I64):
        _write_varint(out, _zigzag(value))
    elif type == DOUBLE:
        out += binary.pack("<d", value)
    elif type == BINARY:
        _write_varint(out, len(value))
        out += value
    elif type in (LIST, SET):
        _write_list(out, *value)
    else:
        _write_struct(out, value)


def _write_list(out: bytearray, type: int, values: Sequence[Any]) -> None:
    if len(values) < 15:
        out.append(len(values) << 4 | type)
    else:
        out.append(0xF0 | type)
        _write_varint(out, len(values))
    for value in values:
        if type in (TRUE, FALSE):
            out.append(TRUE if value else FALSE)
        else:
            _write_value(out, type, value)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unzigzag(value: int) -> int:
    return value >> 1 if not value & 1 else -(value >> 1) - 1
