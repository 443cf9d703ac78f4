"""VALUES with nothing but literals, parameters and DEFAULT: thousands of rows of bulk inserts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from lakedbapi.sql.tokens import NUMBER, PARAMETER, STRING, Token


@dataclass
class PlainValues:
    """`tree` has NULL in place of DEFAULT; `defaults` maps (row, column) to the token DEFAULT."""

    tree: exp.Values
    defaults: dict[tuple[int, int], Token] = field(default_factory=dict)


def read_plain_values(text: str, tokens: Sequence[Token]) -> PlainValues | None:
    """`VALUES (1, $1), …`, tokens of `text`, without a general parser; None when it has anything else in it."""
    rows: list[exp.Tuple] = []
    plain = PlainValues(exp.Values(expressions=rows))
    position, end = 1, len(tokens)
    while position < end and tokens[position].key == "(":
        items: list[exp.Expression] = []
        while position < end and tokens[position].key in ("(", ","):
            position += 1
            is_negative = position < end and tokens[position].key == "-"
            position += is_negative
            item = _plain_item(text, tokens[position], is_negative) if position < end else None
            if item is None:
                return None
            if tokens[position].key == "default":
                plain.defaults[len(rows), len(items)] = tokens[position]
            items.append(item)
            position += 1
        if position >= end or tokens[position].key != ")":
            return None
        rows.append(exp.Tuple(expressions=items))
        position += 1
        if position == end:
            plain.tree.set("expressions", rows)
            return plain
        if tokens[position].key != ",":
            return None
        position += 1
    return None


def _plain_item(text: str, token: Token, is_negative: bool) -> exp.Expression | None:
    if token.kind == NUMBER:
        number = exp.Literal.number(token.value.replace("_", ""))
        return exp.Neg(this=number) if is_negative else number
    if is_negative:
        return None
    if token.kind == PARAMETER:
        return exp.Placeholder(this=token.value[1:])
    if token.kind == STRING and text[token.start] == "'":
        return exp.Literal.string(token.value)
    if token.key in ("null", "default"):
        return exp.Null()
    if token.key in ("true", "false"):
        return exp.Boolean(this=token.key == "true")
    return None
