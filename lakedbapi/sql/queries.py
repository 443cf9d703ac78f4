"""Queries: anything that yields rows and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from lakedbapi.sql.expressions import parse_query
from lakedbapi.sql.keywords import QUERY_STARTS
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.statements import Select, Special
from lakedbapi.sql.tokens import QUOTED, STRING, WORD, Token


def identifiers(tokens: Iterable[Token]) -> frozenset[str]:
    """Casefolded identifiers and string literals: every relation that the tokens can name is among them."""
    return frozenset(token.value.casefold() for token in tokens if token.kind in (WORD, QUOTED, STRING))


def read_query(reader: Reader, specials: tuple[Special, ...]) -> Select:
    """All that is left of `reader` as one query."""
    start = reader.peek()
    if start.key not in QUERY_STARTS and start.key != "(":
        raise reader.error("expected a query")
    tokens = reader.tokens[reader.position :]
    text = reader.remaining_text()
    return Select(text, identifiers(tokens), specials, parse_query(text))


def table_query(name_text: str, tokens: Iterable[Token], specials: tuple[Special, ...]) -> Select:
    """`SELECT * FROM name`."""
    text = f"SELECT * FROM {name_text}"
    return Select(text, identifiers(tokens), specials, parse_query(text))
