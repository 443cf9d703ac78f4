"""Expressions of Spark SQL, as the definition of a Delta table has them, in DuckDB's SQL.

Only what is known to have the same value in both is translated: names, operators and casts whose operands have types
that both treat alike, and the functions of `_FUNCTIONS`. Where one of them has a value, the other may have an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakedbapi.model.sql_types import quote_identifier, quote_literal
from lakedbapi.model.types import Decimal, Scalar, Schema, Struct, Type
from lakedbapi.sql.expressions import parse_query

_INTEGER, _DECIMAL, _FLOAT, _TEXT, _BOOLEAN = "integer", "decimal", "float", "text", "boolean"
_DATE, _LOCAL, _INSTANT, _NULL, _OTHER = "date", "local", "instant", "null", "other"
_NUMBERS = (_INTEGER, _DECIMAL, _FLOAT)
"""From narrow to wide."""
_DATED = frozenset({_DATE, _LOCAL, _INSTANT})
_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _INTEGER),
    **dict.fromkeys(("float32", "float64"), _FLOAT),
    "varchar": _TEXT,
    "boolean": _BOOLEAN,
    "date": _DATE,
    "timestamp": _LOCAL,
    "timestamptz": _INSTANT,
}
_TYPES = {
    "TINYINT": ("TINYINT", _INTEGER),
    "SMALLINT": ("SMALLINT", _INTEGER),
    "INT": ("INTEGER", _INTEGER),
    "BIGINT": ("BIGINT", _INTEGER),
    "FLOAT": ("DOUBLE", _FLOAT),
    "DOUBLE": ("DOUBLE", _FLOAT),
    "TEXT": ("VARCHAR", _TEXT),
    "VARCHAR": ("VARCHAR", _TEXT),
    "BOOLEAN": ("BOOLEAN", _BOOLEAN),
    "DATE": ("DATE", _DATE),
    "TIMESTAMP": ("TIMESTAMPTZ", _INSTANT),
    "TIMESTAMPTZ": ("TIMESTAMPTZ", _INSTANT),
    "TIMESTAMPLTZ": ("TIMESTAMPTZ", _INSTANT),
    "TIMESTAMPNTZ": ("TIMESTAMP", _LOCAL),
}
"""sqlglot's names of types."""
_CASTS = {
    _INTEGER: frozenset({_INTEGER, _DECIMAL, _FLOAT, _BOOLEAN}),
    _FLOAT: frozenset({_INTEGER, _DECIMAL, _FLOAT}),
    _TEXT: frozenset({_TEXT, _INTEGER, _DATE, _BOOLEAN}),
    _BOOLEAN: frozenset({_BOOLEAN}),
    _DATE: _DATED,
    _LOCAL: frozenset({_DATE, _LOCAL}),
    _INSTANT: frozenset({_DATE, _INSTANT}),
}
"""By kind, the kinds that are cast to it alike."""
_COMPARISONS: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}
_ARITHMETIC: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_PATTERN = re.compile(r"(?:yyyy(?!y)|MM(?!M)|dd(?!d)|HH(?!H)|mm(?!m)|ss(?!s)|[-/:._ ])+")
_STRFTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_UNITS = {
    **{unit: unit for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    **dict.fromkeys(("yyyy", "yy"), "year"),
    **dict.fromkeys(("mm", "mon"), "month"),
    "dd": "day",
}
_OF_DAYS = frozenset({"year", "quarter", "month", "week"})


class _Dialect(Spark):
    """Spark's, with all functions as they are written: sqlglot's own trees of them differ from version to version."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in Spark.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name != "IF"
        }


_SPARK = _Dialect()


class _Value(NamedTuple):
    """DuckDB's SQL, in parentheses where it needs them, and the kind of value that it has."""

    sql: str
    kind: str


class _UnknownError(Exception):
    pass


@lru_cache(maxsize=1024)
def to_engine(text: str, schema: Schema) -> str | None:
    """DuckDB's SQL for an expression of Spark over the columns of `schema`; None when it may not mean the same."""
    try:
        tree = _SPARK.parse(text)
        return _Translation(schema).value(tree[0]).sql if len(tree) == 1 else None
    except (SqlglotError, RecursionError, _UnknownError):
        return None


def from_engine(text: str, schema: Schema) -> str | None:
    """Spark's SQL for an expression of DuckDB, the text itself where that means the same; None when Spark has none
    that is known to do so."""
    tree = parse_query(f"SELECT ({text}\n)")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    printed = tree.expressions[0].unnest().sql(dialect=_SPARK, comments=False, normalize_functions=False)
    meant = to_engine(printed, schema)
    if meant is None:
        return None
    return text if "::" not in text and to_engine(text, schema) == meant else printed


class _Translation:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, node: Any) -> _Value:
        """_UnknownError for what may not mean the same."""
        if isinstance(node, exp.Paren):
            return self.value(node.this)
        translate = _NODES.get(type(node))
        if translate is None:
            raise _UnknownError
        return translate(self, node)

    def values(self, nodes: Sequence[Any]) -> list[_Value]:
        return [self.value(node) for node in nodes]

    def of_kind(self, node: Any, *kinds: str) -> _Value:
        found = self.value(node)
        if found.kind not in kinds:
            raise _UnknownError
        return found

    def column(self, node: exp.Column) -> _Value:
        first, *rest = [part.name for part in node.parts]
        field = self._schema.get(first)
        if field is None:
            raise _UnknownError
        sql = quote_identifier(field.name)
        for name in rest:
            members = field.type.fields if isinstance(field.type, Struct) else ()
            field = next((member for member in members if member.name.casefold() == name.casefold()), None)
            if field is None:
                raise _UnknownError
            sql = f"({sql}).{quote_identifier(field.name)}"
        # DuckDB compares a FLOAT to a literal as FLOAT, Spark as DOUBLE.
        return _Value(f"CAST({sql} AS DOUBLE)" if field.type == Scalar("float32") else sql, _kind(field.type))

    def literal(self, node: exp.Literal) -> _Value:
        if node.is_string:
            return _Value(quote_literal(node.this), _TEXT)
        text = node.this
        return _Value(text, _INTEGER if text.isdigit() else _FLOAT if "e" in text.casefold() else _DECIMAL)

    def comparison(self, node: exp.Binary) -> _Value:
        left, right = self.values([node.left, node.right])
        _require_comparable(node.left, left, node.right, right)
        return _Value(f"({left.sql} {_COMPARISONS[type(node)]} {right.sql})", _BOOLEAN)

    def arithmetic(self, node: exp.Binary) -> _Value:
        left, right = self.values([node.left, node.right])
        sql = f"({left.sql} {_ARITHMETIC[type(node)]} {right.sql})"
        if left.kind == _DATE and right.kind == _INTEGER and not isinstance(node, exp.Mul):
            return _Value(sql, _DATE)
        return _Value(sql, _widest([left, right]))

    def quotient(self, node: exp.Binary) -> _Value:
        """Of decimals the scale of the result differs; by 0 all differs."""
        divisor = node.right.unnest()
        is_number = isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.this) != 0
        left = self.of_kind(node.left, _INTEGER, *((_FLOAT,) if isinstance(node, exp.Div) else ()))
        right = self.of_kind(node.right, _INTEGER)
        if not is_number:
            raise _UnknownError
        if isinstance(node, exp.Mod):
            return _Value(f"({left.sql} % {right.sql})", _INTEGER)
        return _Value(f"(CAST({left.sql} AS DOUBLE) / {right.sql})", _FLOAT)

    def negative(self, node: exp.Neg) -> _Value:
        inner = self.of_kind(node.this, *_NUMBERS)
        return _Value(f"(-{inner.sql})", inner.kind)

    def joined(self, node: exp.Connector) -> _Value:
        left, right = (self.of_kind(side, _BOOLEAN, _NULL) for side in (node.left, node.right))
        return _Value(f"({left.sql} {'AND' if isinstance(node, exp.And) else 'OR'} {right.sql})", _BOOLEAN)

    def negated(self, node: exp.Not) -> _Value:
        return _Value(f"(NOT {self.of_kind(node.this, _BOOLEAN, _NULL).sql})", _BOOLEAN)

    def is_(self, node: exp.Is) -> _Value:
        word = node.expression
        if not isinstance(word, (exp.Null, exp.Boolean)):
            raise _UnknownError
        inner = self.value(node.this) if isinstance(word, exp.Null) else self.of_kind(node.this, _BOOLEAN)
        return _Value(f"({inner.sql} IS {word.sql(dialect='duckdb')})", _BOOLEAN)

    def in_(self, node: exp.In) -> _Value:
        if not node.expressions or node.args.get("query"):
            raise _UnknownError
        inner, items = self.value(node.this), self.values(node.expressions)
        for item, found in zip(node.expressions, items, strict=True):
            _require_comparable(node.this, inner, item, found)
        return _Value(f"({inner.sql} IN ({', '.join(item.sql for item in items)}))", _BOOLEAN)

    def between(self, node: exp.Between) -> _Value:
        inner = self.value(node.this)
        ends = [node.args["low"], node.args["high"]]
        low, high = self.values(ends)
        for end, found in zip(ends, (low, high), strict=True):
            _require_comparable(node.this, inner, end, found)
        return _Value(f"({inner.sql} BETWEEN {low.sql} AND {high.sql})", _BOOLEAN)

    def like(self, node: exp.Like) -> _Value:
        """A backslash in a pattern is Spark's alone."""
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or "\\" in pattern.this:
            raise _UnknownError
        return _Value(f"({self.of_kind(node.this, _TEXT).sql} LIKE {self.value(pattern).sql})", _BOOLEAN)

    def case(self, node: exp.Case) -> _Value:
        branches = node.args["ifs"]
        if node.this is not None or any(not isinstance(branch, exp.If) for branch in branches):
            raise _UnknownError
        conditions = [self.of_kind(branch.this, _BOOLEAN).sql for branch in branches]
        results = self.values([branch.args["true"] for branch in branches])
        other = node.args.get("default")
        last = _Value("NULL", _NULL) if other is None else self.value(other)
        whens = " ".join(f"WHEN {when} THEN {then.sql}" for when, then in zip(conditions, results, strict=True))
        return _Value(f"(CASE {whens} ELSE {last.sql} END)", _common([*results, last]))

    def cast(self, node: exp.Cast) -> _Value:
        inner, to = self.value(node.this), node.to
        name = to.this.name
        if name == "DECIMAL" and len(to.expressions) == 2:
            if inner.kind not in (_INTEGER, _DECIMAL, _NULL):
                raise _UnknownError
            precision, scale = (parameter.name for parameter in to.expressions)
            return _Value(f"CAST({inner.sql} AS DECIMAL({precision}, {scale}))", _DECIMAL)
        sql_type, kind = _TYPES.get(name, ("", ""))
        known = kind and (inner.kind in _CASTS[kind] or inner.kind == _NULL or _is_instant(node.this, kind))
        if not known or (name == "FLOAT" and inner.kind != _FLOAT):
            raise _UnknownError
        # Spark cuts fractions off, DuckDB rounds.
        cut = kind == _INTEGER and inner.kind in (_DECIMAL, _FLOAT)
        return _Value(f"CAST({f'trunc({inner.sql})' if cut else inner.sql} AS {sql_type})", kind)

    def concatenation(self, node: exp.DPipe) -> _Value:
        return self.concatenated([node.left, node.right])

    def concatenated(self, nodes: Sequence[Any]) -> _Value:
        parts = [self.of_kind(node, _TEXT) for node in nodes]
        return _Value(f"({' || '.join(part.sql for part in parts)})", _TEXT)

    def function(self, node: exp.Anonymous) -> _Value:
        translate = _FUNCTIONS.get(str(node.this).casefold())
        if translate is None:
            raise _UnknownError
        try:
            signature(translate).bind(self, *node.expressions)
        except TypeError as error:
            raise _UnknownError from error
        return translate(self, *node.expressions)


_NODES: dict[type, Callable[[_Translation, Any], _Value]] = {
    exp.Column: _Translation.column,
    exp.Literal: _Translation.literal,
    exp.Boolean: lambda self, node: _Value("true" if node.this else "false", _BOOLEAN),
    exp.Null: lambda self, node: _Value("NULL", _NULL),
    exp.Neg: _Translation.negative,
    exp.And: _Translation.joined,
    exp.Or: _Translation.joined,
    exp.Not: _Translation.negated,
    exp.Is: _Translation.is_,
    exp.In: _Translation.in_,
    exp.Between: _Translation.between,
    exp.Like: _Translation.like,
    exp.Case: _Translation.case,
    exp.Cast: _Translation.cast,
    exp.TryCast: _Translation.cast,
    exp.Div: _Translation.quotient,
    exp.Mod: _Translation.quotient,
    exp.DPipe: _Translation.concatenation,
    exp.Anonymous: _Translation.function,
    exp.CurrentTimestamp: lambda self, node: _Value("now()", _INSTANT),
    exp.CurrentDate: lambda self, node: _Value("current_date", _DATE),
    **dict.fromkeys(_COMPARISONS, _Translation.comparison),
    **dict.fromkeys(_ARITHMETIC, _Translation.arithmetic),
}


def _part(name: str, *kinds: str) -> Callable[..., _Value]:
    return lambda self, of: _Value(f"{name}({self.of_kind(of, *kinds).sql})", _INTEGER)


def _whole(name: str) -> Callable[..., _Value]:
    return lambda self, of: _Value(f"CAST({name}({self.of_kind(of, *_NUMBERS).sql}) AS BIGINT)", _INTEGER)


def _absolute(self: _Translation, of: Any) -> _Value:
    inner = self.of_kind(of, *_NUMBERS)
    return _Value(f"abs({inner.sql})", inner.kind)


def _date_format(self: _Translation, of: Any, pattern: Any) -> _Value:
    inner = self.of_kind(of, *_DATED)
    if not isinstance(pattern, exp.Literal) or not _PATTERN.fullmatch(pattern.this):
        raise _UnknownError
    local = f"({inner.sql} AT TIME ZONE 'UTC')" if inner.kind == _INSTANT else inner.sql
    text = re.sub("|".join(_STRFTIME), lambda word: _STRFTIME[word[0]], pattern.this)
    return _Value(f"strftime({local}, {quote_literal(text)})", _TEXT)


def _date_trunc(self: _Translation, unit: Any, of: Any) -> _Value:
    inner = self.of_kind(of, *_DATED)
    return _Value(f"CAST(date_trunc({_unit(unit)}, {inner.sql}) AS TIMESTAMPTZ)", _INSTANT)


def _trunc(self: _Translation, of: Any, unit: Any) -> _Value:
    word = _unit(unit)
    if word.strip("'") not in _OF_DAYS:
        raise _UnknownError
    return _Value(f"CAST(date_trunc({word}, {self.of_kind(of, *_DATED).sql}) AS DATE)", _DATE)


def _unit(node: Any) -> str:
    unit = _UNITS.get(node.this.casefold()) if isinstance(node, exp.Literal) else None
    if unit is None:
        raise _UnknownError
    return quote_literal(unit)


def _to_date(self: _Translation, of: Any) -> _Value:
    return _Value(f"CAST({self.of_kind(of, *_DATED).sql} AS DATE)", _DATE)


def _substring(self: _Translation, of: Any, *places: Any) -> _Value:
    """Places before the first character mean different things."""
    if not 1 <= len(places) <= 2 or not all(isinstance(place, exp.Literal) and place.is_int for place in places):
        raise _UnknownError
    if int(places[0].this) < 1:
        raise _UnknownError
    arguments = [self.of_kind(of, _TEXT).sql, *(place.this for place in places)]
    return _Value(f"substring({', '.join(arguments)})", _TEXT)


def _first_of(name: str) -> Callable[..., _Value]:
    def translate(self: _Translation, *nodes: Any) -> _Value:
        found = self.values(nodes)
        return _Value(f"{name}({', '.join(each.sql for each in found)})", _common(found))

    return translate


def _null_if(self: _Translation, value: Any, other: Any) -> _Value:
    found, compared = self.values([value, other])
    _require_comparable(value, found, other, compared)
    return _Value(f"nullif({found.sql}, {compared.sql})", found.kind)


def _if(self: _Translation, condition: Any, value: Any, other: Any) -> _Value:
    when, (then, otherwise) = self.of_kind(condition, _BOOLEAN), self.values([value, other])
    return _Value(f"(CASE WHEN {when.sql} THEN {then.sql} ELSE {otherwise.sql} END)", _common([then, otherwise]))


def _trim(self: _Translation, of: Any) -> _Value:
    return _Value(f"trim({self.of_kind(of, _TEXT).sql})", _TEXT)


_FUNCTIONS: dict[str, Callable[..., _Value]] = {
    **{name: _part(name, *_DATED) for name in ("year", "quarter", "month", "day", "dayofmonth", "dayofyear")},
    **{name: _part(name, _LOCAL, _INSTANT) for name in ("hour", "minute", "second")},
    **dict.fromkeys(("length", "char_length", "character_length"), _part("length", _TEXT)),
    "floor": _whole("floor"),
    **dict.fromkeys(("ceil", "ceiling"), _whole("ceil")),
    "abs": _absolute,
    "date_format": _date_format,
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    **dict.fromkeys(("to_date", "date"), _to_date),
    **dict.fromkeys(("substring", "substr"), _substring),
    "concat": lambda self, *parts: self.concatenated(parts),
    "trim": _trim,
    "coalesce": _first_of("coalesce"),
    **dict.fromkeys(("ifnull", "nvl"), lambda self, value, other: _first_of("coalesce")(self, value, other)),
    "nullif": _null_if,
    "if": _if,
    "isnull": lambda self, of: _Value(f"({self.value(of).sql} IS NULL)", _BOOLEAN),
    "isnotnull": lambda self, of: _Value(f"({self.value(of).sql} IS NOT NULL)", _BOOLEAN),
    **dict.fromkeys(("current_timestamp", "now"), lambda self: _Value("now()", _INSTANT)),
    "current_date": lambda self: _Value("current_date", _DATE),
}


def _kind(type: Type) -> str:
    if isinstance(type, Decimal):
        return _DECIMAL
    return _KINDS.get(type.name, _OTHER) if isinstance(type, Scalar) else _OTHER


def _require_comparable(left: Any, a: _Value, right: Any, b: _Value) -> None:
    """_UnknownError unless both compare the values alike: text beside a date only where it is a whole date itself."""
    kinds = {a.kind, b.kind} - {_NULL}
    if _OTHER in kinds:
        raise _UnknownError
    if len(kinds) < 2 or kinds <= set(_NUMBERS) or kinds <= {_DATE, _INSTANT} or kinds <= {_DATE, _LOCAL}:
        return
    texts = [node for node, value in ((left, a), (right, b)) if value.kind == _TEXT]
    if len(texts) == 1 and all(_is_instant(texts[0], kind) for kind in kinds - {_TEXT}):
        return
    raise _UnknownError


def _is_instant(node: Any, kind: str) -> bool:
    """Whether a text is one that is a value of `kind`, which both read alike."""
    if kind not in _DATED or not isinstance(node, exp.Literal) or not node.is_string:
        return False
    return bool(_ISO_DATE.fullmatch(node.this) or (kind != _DATE and _ISO_TIME.fullmatch(node.this)))


def _widest(values: Sequence[_Value]) -> str:
    kinds = {value.kind for value in values} - {_NULL}
    if not kinds <= set(_NUMBERS):
        raise _UnknownError
    return max(kinds, key=_NUMBERS.index, default=_NULL)


def _common(values: Sequence[_Value]) -> str:
    kinds = {value.kind for value in values} - {_NULL}
    return kinds.pop() if len(kinds) == 1 else _widest(values)
