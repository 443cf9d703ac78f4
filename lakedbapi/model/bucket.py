"""The `bucket(N)` partition transform: Murmur3 (x86, 32 bits, seed 0) of a value, modulo N.

DuckLake and Iceberg hash decimals, UUIDs, times and timestamps differently.
"""

from __future__ import annotations

import decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.types import Decimal, Scalar, Type

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_DECIMAL_BYTES = 16
_DIGITS = 18
"""Of decimals whose unscaled numbers fit into 8 bytes."""
_WITHOUT_BUCKETS = frozenset({"time_ns", "timetz", "interval", "variant", "geometry"})
_TEXT = "text"
_HASHES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "number"),
    **dict.fromkeys(("float32", "float64"), "double"),
    **dict.fromkeys(("timestamp", "timestamptz"), "us"),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64", "int128", "uint128"), _TEXT),
    "timestamp_s": "s",
    "timestamp_ms": "ms",
    "timestamp_ns": "ns",
    "timestamptz_ns": "ns",
}
"""What DuckLake hashes of a value; of other types what they are."""

Hashes = npt.NDArray[np.uint32]


def has_buckets(type: Type) -> bool:
    """Whether `buckets` are defined for a column of `type`."""
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name not in _WITHOUT_BUCKETS)


def hashed_as(type: Type) -> str:
    """What `buckets` hash of values of a column of `type`: equal values of types that differ in it may be in two."""
    if isinstance(type, Decimal):
        return f"unit of 1e-{type.scale}" if type.precision <= _DIGITS else _TEXT
    assert isinstance(type, Scalar)
    return _HASHES.get(type.name, type.name)


def buckets(values: pa.Array, count: int, type: Type) -> pa.Array:
    """The bucket number of each value of a column of `type`, int64; NULL for NULL."""
    return _numbers(murmur3(_as_ducklake_hashes(values, type)), values, count)


def iceberg_buckets(values: pa.Array, count: int, type: Type) -> pa.Array:
    """As `buckets`, of a column of `type` in Iceberg (spec, Appendix B: 32-bit Hash Requirements)."""
    return _numbers(murmur3(_as_iceberg_hashes(values, type)), values, count)


def _numbers(hashes: Hashes, values: pa.Array, count: int) -> pa.Array:
    numbers = (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % count
    return pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))


def murmur3(values: pa.Array) -> Hashes:
    """The hash of each value; that of a NULL means nothing.

    Integers, booleans, dates (days), timestamps (microseconds) and decimals (unscaled) are hashed as 8-byte integers,
    floats as the bits of the double, text and binary as their bytes.
    """
    type = values.type
    if pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return _hash_bytes(values)
    if pa.types.is_floating(type):
        doubles: npt.NDArray[np.float64] = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        return _hash_int64((doubles + 0.0).view(np.int64))  # -0.0 becomes 0.0
    if pa.types.is_decimal(type):
        return _hash_int64(_unscaled(values))
    if pa.types.is_date(type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type):
        values = values.cast(pa.timestamp("us", type.tz), safe=False).cast(pa.int64())
    elif not (pa.types.is_integer(type) or pa.types.is_boolean(type)):
        raise NotSupportedError(
            f"Partitioning by bucket is not defined for the type {type}. Use another column or transform."
        )
    return _hash_int64(values.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False))


def _as_ducklake_hashes(values: pa.Array, type: Type) -> pa.Array:
    """Numbers that 8 bytes or their sign may not hold as text, times and timestamps as numbers in their own unit."""
    hashed = hashed_as(type)
    if hashed == _TEXT:
        return pa.array([None if value is None else format(value, "f") for value in _decimals(values)], pa.string())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp(hashed, values.type.tz), safe=False).cast(pa.int64())
    return values.cast(pa.int64()) if pa.types.is_time(values.type) else values


def _decimals(values: pa.Array) -> list[decimal.Decimal | None]:
    return [None if value is None else decimal.Decimal(value) for value in values.to_pylist()]


def _unscaled(values: pa.Array) -> npt.NDArray[np.int64]:
    """14.20 -> 1420."""
    if values.type.precision > _DIGITS:
        raise NotSupportedError(
            f"Partitioning by bucket is not defined for {values.type}, only up to {_DIGITS} digits."
        )
    words = np.frombuffer(values.buffers()[1], dtype=np.int64)[::2]
    unscaled: npt.NDArray[np.int64] = words[values.offset : values.offset + len(values)]
    return unscaled


def _as_iceberg_hashes(values: pa.Array, type: Type) -> pa.Array:
    """Decimals and UUIDs as their bytes, times and timestamps as microseconds."""
    if pa.types.is_decimal(values.type):
        return _fewest_bytes(values)
    if type == Scalar("uuid"):
        digits = pc.replace_substring(values.fill_null("0" * 32), "-", "").buffers()[2]
        raw = bytes.fromhex("" if digits is None else digits.to_pybytes()[: 32 * len(values)].decode())
        return pa.Array.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(raw)]).cast(pa.binary())
    if pa.types.is_time(values.type):
        return values.cast(pa.time64("us")).cast(pa.int64())
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        return pa.array(values.cast(pa.int64()).fill_null(0).to_numpy() // 1000)
    return values


def _fewest_bytes(values: pa.Array) -> pa.Array:
    """The unscaled numbers in two's complement, big-endian, in as few bytes as each needs."""
    stored = np.frombuffer(values.buffers()[1], dtype=np.uint8).reshape(-1, _DECIMAL_BYTES)
    numbers = stored[values.offset : values.offset + len(values), ::-1]
    sign = np.where(numbers[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    differs = numbers != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), _DECIMAL_BYTES - 1)
    # A byte more where the first that differs would have the other sign.
    first -= ((np.take_along_axis(numbers, first[:, None], axis=1) ^ sign) & 0x80)[:, 0] != 0
    kept = np.arange(_DECIMAL_BYTES) >= first[:, None]
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(numbers[kept].tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _hash_int64(numbers: npt.NDArray[np.int64]) -> Hashes:
    words = np.ascontiguousarray(numbers).view(np.uint32).reshape(-1, 2)
    hashes = np.zeros(len(words), dtype=np.uint32)
    for word in (words[:, 0], words[:, 1]):
        hashes = _mix_block(hashes, word)
    return _finish(hashes, np.uint32(8))


def _hash_bytes(values: pa.Array) -> Hashes:
    """Block by block for all values at once, so that the number of steps is that of the longest value's blocks."""
    values = values.cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(offsets)
    longest = int(lengths.max()) if len(lengths) else 0
    raw = values.buffers()[2]
    data = np.zeros(0 if raw is None else len(raw) + 4, dtype=np.uint8)
    if raw is not None:
        data[: len(raw)] = np.frombuffer(raw, dtype=np.uint8)
    hashes = np.zeros(len(values), dtype=np.uint32)
    for start in range(0, longest - 3, 4):
        active = np.flatnonzero(lengths >= start + 4)
        hashes[active] = _mix_block(hashes[active], _words(data, offsets[active] + start, 4))
    for rest in (1, 2, 3):
        active = np.flatnonzero(lengths % 4 == rest)
        hashes[active] ^= _scramble(_words(data, offsets[active] + lengths[active] - rest, rest))
    return _finish(hashes, lengths.astype(np.uint32))


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], width: int) -> Hashes:
    """`width` bytes at each place, little-endian."""
    words = np.zeros(len(at), dtype=np.uint32)
    for byte in range(width):
        words |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return words


def _mix_block(hashes: Hashes, words: Hashes) -> Hashes:
    mixed = _rotate(hashes ^ _scramble(words), 13)
    result: Hashes = mixed * np.uint32(5) + np.uint32(0xE6546B64)
    return result


def _scramble(words: Hashes) -> Hashes:
    result: Hashes = _rotate(words * _C1, 15) * _C2
    return result


def _rotate(words: Hashes, bits: int) -> Hashes:
    result: Hashes = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return result


def _finish(hashes: Hashes, length: Hashes | np.uint32) -> Hashes:
    hashes = hashes ^ length
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    return hashes
