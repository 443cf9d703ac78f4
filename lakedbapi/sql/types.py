"""Types as SQL text -> `model.types.Type`."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.sql_types import SCALAR_SPELLINGS
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct, Type
from lakedbapi.sql.keywords import words
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.tokens import NUMBER, Canonical, check_brackets, scan

_ALIASES = {
    "boolean": "bool logical",
    "int8": "int1 byte",
    "int16": "int2 int16 short",
    "int32": "int int4 int32 signed integral mediumint",
    "int64": "int8 int64 long oid",
    "int128": "int128",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "uint128": "uint128",
    "float32": "float4 float32 real binary_float",
    "float64": "float8 float64 binary_double",
    "timestamp": "datetime timestamp_us timestamp_ntz",
    "timestamptz": "timestamptz timestamp_ltz",
    "timetz": "timetz",
    "varchar": (
        "text string char bpchar nvarchar character nchar "
        "tinytext mediumtext longtext ntext clob nclob varchar2 nvarchar2"
    ),
    "blob": "bytea binary varbinary bytes tinyblob mediumblob longblob image raw",
    "uuid": "guid uniqueidentifier",
}
_SCALARS = {spelling.casefold(): name for name, spelling in SCALAR_SPELLINGS.items() if " " not in spelling} | {
    alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()
}
_DECIMALS = frozenset(("decimal", "numeric", "dec"))
_UNSUPPORTED = words("enum union bit bitstring bignum varint null type tuple")
_INSTEAD = {
    type: instead
    for instead, types in {
        "BOOLEAN for one bit, BLOB for many": "bit bitstring",
        "DECIMAL(10, 4)": "smallmoney",
        "DECIMAL(19, 4)": "money",
        "DECIMAL(38, 0), or what its values need": "number",
        "DECIMAL(38, 9), or what its values need": "bignumeric bigdecimal",
        "GEOMETRY": "geography point linestring polygon",
        "JSON": "jsonb",
        "JSON, VARIANT or STRUCT(…)": "object",
        "MAP(VARCHAR, VARCHAR)": "hstore",
        "SMALLINT": "year",
        "TIMESTAMP": "datetime2 smalldatetime",
        "TIMESTAMP WITH TIME ZONE": "datetimeoffset timestamp_tz",
        "the type of its elements and brackets, INTEGER[]": "array",
        "VARCHAR": "citext enum cidr inet macaddr name sysname tsvector xml",
        "VARCHAR[]": "set",
        "VARIANT": "sql_variant super",
    }.items()
    for type in types.split()
}
"""What to write for types of other systems."""
_OTHERWISE = "VARCHAR, or a struct of its members"
_TIMESTAMP_BY_PRECISION = ("timestamp_s", *["timestamp_ms"] * 3, *["timestamp"] * 3, *["timestamp_ns"] * 3)
_INTEGERS = frozenset(("int8", "int16", "int32", "int64"))
_IGNORED_LENGTH = frozenset(("varchar", "blob", "geometry"))
MAX_PRECISION = 38


def type_of(text: str) -> Type:
    """The type that `text` spells in DuckDB's SQL, such as `STRUCT(a INT, b VARCHAR[])`.

    Raises NotSupportedError for a type that no lake format can hold, ProgrammingError for what is no type.
    """
    tokens = scan(text)
    check_brackets(text, tokens)
    reader = Reader(Canonical(text), tokens)
    type = read_type(reader)
    reader.expect_end()
    return type


def read_type(reader: Reader) -> Type:
    type = _read_base(reader)
    while True:
        if reader.accept("[", "]"):
            type = List(Field("element", type))
        elif reader.accept("array"):
            if reader.at("["):
                raise _fixed_array(reader)
            type = List(Field("element", type))
        elif reader.at("["):
            raise _fixed_array(reader)
        else:
            return type


def _read_base(reader: Reader) -> Type:
    token = reader.peek()
    if not token.is_identifier:
        raise reader.error("expected a type")
    reader.position += 1
    name = token.value.casefold()
    if name in ("struct", "row"):
        return _read_struct(reader)
    if name == "map":
        return _read_map(reader)
    if name == "array" and reader.at("<"):
        (item,) = _only(reader, reader.angled(), 1, "an ARRAY<…> has one type")
        return List(Field("element", item))
    if name in _DECIMALS or (name == "number" and reader.at("(")):
        return _read_decimal(reader)
    if name in _UNSUPPORTED:
        raise NotSupportedError(
            f"the type {token.value.upper()} cannot be stored in a lake table: use {_INSTEAD.get(name, _OTHERWISE)}"
        )
    scalar = _read_scalar_name(reader, name)
    if scalar is None:
        instead = f": use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise reader.canonical.error(token.start, f"there is no type {token.value}{instead}")
    if reader.at("collate"):
        raise NotSupportedError("COLLATE on a column is not supported: put COLLATE into the query")
    return Scalar(scalar)


def _read_scalar_name(reader: Reader, name: str) -> str | None:
    """The scalar that `name` and the words and numbers behind it mean."""
    if name == "double":
        reader.accept("precision")
    if name in ("character", "char", "national"):
        reader.accept("character") or reader.accept("char")
        reader.accept("varying")
        name = "varchar"
    scalar = _SCALARS.get(name)
    if scalar in _INTEGERS:
        _read_numbers(reader)  # How wide MySQL shows it.
        is_unsigned = reader.accept("unsigned")
        reader.accept("zerofill")
        return f"u{scalar}" if is_unsigned else scalar
    if name in ("float", "double"):
        return _float_of_precision(reader, scalar)
    if scalar in ("timestamp", "time", "timestamptz"):
        precision = _read_numbers(reader)
        if scalar == "timestamp" and precision:
            scalar = _timestamp_of_precision(reader, precision[0])
        if reader.accept("with", "time", "zone") or reader.accept("with", "local", "time", "zone"):
            return "timetz" if name == "time" else "timestamptz"
        reader.accept("without", "time", "zone")
        return scalar
    if scalar in _IGNORED_LENGTH and reader.at("("):
        reader.bracketed()
    return scalar


def _float_of_precision(reader: Reader, scalar: str | None) -> str | None:
    """FLOAT(p) has p binary digits; FLOAT(p, s) rounds to s decimal ones in MySQL."""
    start, numbers = reader.peek(), _read_numbers(reader)
    if len(numbers) > 1:
        raise reader.error(f"digits are counted by DECIMAL({numbers[0]}, {numbers[1]}) only", start)
    if numbers and not 1 <= numbers[0] <= 53:
        raise reader.error("the precision of a FLOAT is from 1 to 53", start)
    return scalar if not numbers else "float32" if numbers[0] <= 24 else "float64"


def _timestamp_of_precision(reader: Reader, precision: int) -> str:
    if precision >= len(_TIMESTAMP_BY_PRECISION):
        raise reader.error("the precision of a TIMESTAMP is at most 9")
    return _TIMESTAMP_BY_PRECISION[precision]


def _read_decimal(reader: Reader) -> Decimal:
    """DuckDB's default is (18, 3); a precision alone means scale 0."""
    start = reader.peek()
    # Oracle's NUMBER(*, 0) has as many digits as there can be.
    widest = MAX_PRECISION if reader.at("(", "*", ",") else None
    numbers = _read_numbers(reader, widest) or [18, 3]
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if len(numbers) > 2 or not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise reader.error(
            f"DECIMAL(precision, scale) needs 1 <= precision <= {MAX_PRECISION} and scale <= precision", start
        )
    return Decimal(precision, scale)


def _read_numbers(reader: Reader, widest: int | None = None) -> list[int]:
    """`(1, 2)`, or nothing; `widest` is what `*` stands for."""
    if not reader.at("("):
        return []
    numbers: list[int] = []
    for item in reader.bracketed().items():
        token = item.next()
        if token.key == "*" and widest is not None and not numbers:
            numbers.append(widest)
            continue
        if token.kind != NUMBER or not token.value.isdigit():
            raise reader.error("expected a number", token)
        item.expect_end()
        numbers.append(int(token.value))
    return numbers


def _read_struct(reader: Reader) -> Struct:
    fields: list[Field] = []
    names: set[str] = set()
    for item in (reader.angled() if reader.at("<") else reader.bracketed()).items(typed=True):
        token = item.next()
        if not token.is_identifier:
            raise item.error("expected a field name", token)
        item.accept(":")
        if token.value.casefold() in names:
            raise item.error(f"the struct has two fields {token.value}", token)
        names.add(token.value.casefold())
        fields.append(Field(token.value, read_type(item)))
        item.expect_end()
    if not fields:
        raise reader.error("a STRUCT needs fields: STRUCT(name TYPE, …)")
    return Struct(tuple(fields))


def _read_map(reader: Reader) -> Map:
    content = reader.angled() if reader.at("<") else reader.bracketed()
    key, value = _only(reader, content, 2, "a MAP has a key type and a value type")
    return Map(Field("key", key), Field("value", value))


def _only(reader: Reader, content: Reader, count: int, message: str) -> list[Type]:
    """The types between the brackets of a type."""
    types = []
    for item in content.items(typed=True):
        types.append(read_type(item))
        item.expect_end()
    if len(types) != count:
        raise reader.error(message)
    return types


def _fixed_array(reader: Reader) -> NotSupportedError:
    return NotSupportedError("arrays of a fixed length cannot be stored in a lake table: use a list, TYPE[]")
