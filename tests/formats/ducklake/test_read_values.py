"""Text in the catalog becomes typed values, also where Arrow's own parsers end."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats.ducklake.literals import parse_literal
from lakedbapi.formats.ducklake.metadata import format_timestamp, parse_timestamp
from lakedbapi.formats.ducklake.types import parse_type
from lakedbapi.formats.ducklake.values import evolve, parse_stored, parse_text, typed_array
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct

UTC = timezone.utc
INFINITE = 2**63 - 1


@pytest.mark.parametrize(
    ("type", "texts", "values"),
    [
        ("boolean", ["0", "1", "true", "FALSE", "x"], [False, True, True, False, None]),
        ("int8", ["-128", "127", "128", "x"], [-128, 127, None, None]),
        ("uint64", ["18446744073709551615", "-1"], [2**64 - 1, None]),
        ("int128", ["-5", "1.5"], [-5, None]),
        ("int128", [f"{2**127}", f"{-(2**127) - 1}", ""], [None, None, None]),
        ("float64", ["1e+300", "-inf", "x"], [1e300, float("-inf"), None]),
        ("date", ["2020-02-29", "2020-13-01", "0001-01-01"], [date(2020, 2, 29), None, date(1, 1, 1)]),
        ("timestamp", ["2020-01-01 00:00:00.5", "x"], [datetime(2020, 1, 1, 0, 0, 0, 500000), None]),
        ("timestamptz", ["2020-01-01 01:00:00+01", "x"], [datetime(2020, 1, 1, tzinfo=UTC), None]),
        ("varchar", ["", "x"], ["", "x"]),
        ("blob", [r"\xAA\x00b", "a"], [b"\xaa\x00b", b"a"]),
    ],
)
def test_text_that_is_no_value_is_unknown(type: str, texts: list[str], values: list[Any]) -> None:
    assert parse_text(texts, parse_type(type)).to_pylist() == values


@pytest.mark.parametrize(
    ("type", "text", "number"),
    [
        ("date", "infinity", 2**31 - 1),
        ("date", "-infinity", -(2**31) + 1),
        ("date", "12020-01-01", 3670687),
        ("date", "0001-12-31 (BC)", -719163),
        ("date", "0400-01-01 (BC)", -865259),
        ("timestamp", "infinity", INFINITE),
        ("timestamp_s", "1969-12-31 23:59:59", -1),
        ("timestamp_ns", "2020-01-01 00:00:00.123456789", 1577836800123456789),
        ("timestamptz", "-infinity", -INFINITE),
        ("time", "24:00:00", 86_400_000_000),
        ("time_ns", "00:00:00.000000001", 1),
    ],
)
def test_extreme_times_are_what_duckdb_has(type: str, text: str, number: int) -> None:
    array = parse_text([text], parse_type(type))
    storage = pa.int32() if type == "date" else pa.int64()
    assert array.cast(storage).to_pylist() == [number]


def test_decimals_get_the_scale_of_the_type() -> None:
    assert [str(value) for value in parse_text(["-3.5", "1e1", "x"], Decimal(10, 2)).to_pylist()] == [
        "-3.50",
        "10.00",
        "None",
    ]


@pytest.mark.parametrize(
    ("text", "months", "days", "nanoseconds"),
    [
        ("1 year 2 months 3 days 04:05:06.789", 14, 3, 14_706_789_000_000),
        ("1 year 2 mons -3 days", 14, -3, 0),
        ("-00:00:01", 0, 0, -1_000_000_000),
        ("00:00:00", 0, 0, 0),
        ("-14 months 3 days 5 microseconds", -14, 3, 5_000),
    ],
)
def test_intervals_keep_their_parts(text: str, months: int, days: int, nanoseconds: int) -> None:
    (value,) = parse_text([text], Scalar("interval")).to_pylist()
    assert tuple(value) == (months, days, nanoseconds)


def test_whole_numbers_of_39_digits_are_read() -> None:
    numbers = [2**127 - 1, -(2**127), 10**38, None, 7]
    texts = [None if number is None else str(number) for number in numbers]
    for array in (parse_text(texts, Scalar("int128")), typed_array(numbers, Scalar("int128"))):
        data = array.buffers()[1].to_pybytes()
        found = [int.from_bytes(data[i : i + 16], "little", signed=True) for i in range(0, len(data), 16)]
        assert [
            number if valid else None for number, valid in zip(found, array.is_valid().to_pylist(), strict=True)
        ] == numbers
    (row,) = parse_text([f"[{2**127 - 1}, NULL]"], List(Field("element", Scalar("int128"))))
    assert row.is_valid


def test_a_stored_value_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(DataError, match=r"column i.*'x'"):
        parse_stored(["1", "x"], Scalar("int32"), "column i")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, NULL]", ["1", "2", None]),
        (r"['a,b', 'it\'s', '', NULL, 'null', null]", ["a,b", "it's", "", None, "null", None]),
        (r"{'a': 1, 'b': 'x''y\z'}", [("a", "1"), ("b", r"x'y\z")]),
        ("{k k=1, l='='}", [("k k", "1"), ("l", "=")]),
        ("{'a': [{'x': 1}, NULL], 'm': {1=a}}", [("a", [[("x", "1")], None]), ("m", [("1", "a")])]),
        ("{a: 2020-01-01 10:11:12}", [("a", "2020-01-01 10:11:12")]),
        ("{'t': CAST('2020-01-01' AS VARCHAR), 'n': 1}", [("t", "2020-01-01"), ("n", "1")]),
        ("[]", []),
        ("{}", []),
        (r"['back\\slash']", ["back\\slash"]),
    ],
)
def test_nested_text_is_opened(text: str, value: Any) -> None:
    assert parse_literal(text) == value


@pytest.mark.parametrize("text", ["", "[1", "{'a'}", "['x", "1", "[1] 2"])
def test_text_that_is_not_nested_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|quote|value"):
        parse_literal(text)


def test_a_column_that_changed_keeps_its_values_by_field_id() -> None:
    old = Field("st", Struct((Field("a", Scalar("int32"), 2), Field("b", Scalar("varchar"), 3))), 1)
    new = Field(
        "st",
        Struct(
            (
                Field("renamed", Scalar("varchar"), 3),
                Field("a", Scalar("int64"), 4, initial_default="7"),
                Field("wide", Scalar("int64"), 2),
            )
        ),
        1,
    )
    array = typed_array(["{'a': 1, 'b': 'x'}", None, "{'a': NULL, 'b': 'NULL'}"], old.type)
    assert evolve(array, old, new).to_pylist() == [
        {"renamed": "x", "a": 7, "wide": 1},
        None,
        {"renamed": "NULL", "a": 7, "wide": None},
    ]


def test_lists_and_maps_change_inside() -> None:
    old = Field("l", List(Field("element", Scalar("int32"), 2)), 1)
    new = Field("l", List(Field("element", Scalar("int64"), 2)), 1)
    array = typed_array(["[1, NULL]", None, "[]"], old.type)
    assert evolve(array, old, new).to_pylist() == [[1, None], None, []]
    of_int = Field("m", Map(Field("key", Scalar("varchar"), 2), Field("value", Scalar("int32"), 3)), 1)
    of_long = Field("m", Map(Field("key", Scalar("varchar"), 2), Field("value", Scalar("int64"), 3)), 1)
    array = typed_array(["{k=1}", None, "{}"], of_int.type)
    assert evolve(array, of_int, of_long).to_pylist() == [[("k", 1)], None, []]


def test_type_names_are_read_in_every_spelling() -> None:
    assert parse_type("decimal(10, 2)") == parse_type("DECIMAL(10,2)") == Decimal(10, 2)
    assert parse_type("timestamp_us") == Scalar("timestamp")
    with pytest.raises(NotSupportedError, match="hypercube"):
        parse_type("hypercube")


@pytest.mark.parametrize("text", ["2026-11-29 22:08:46+00", "2026-11-29 22:08:46.39727+00", "2026-11-29 22:08:46.1+00"])
def test_catalog_times_are_written_as_duckdb_writes_them(text: str) -> None:
    assert format_timestamp(parse_timestamp(text)) == text
