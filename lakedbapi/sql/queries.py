"""Queries: anything that yields rows and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlglot import exp

from lakedbapi.errors import ProgrammingError
from lakedbapi.sql.expressions import parse_query, render
from lakedbapi.sql.keywords import QUERY_STARTS
from lakedbapi.sql.nulls import without_compared_nulls
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.references import is_procedure
from lakedbapi.sql.statements import Call, Function, Select, Special
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
    names = identifiers(tokens)
    if "for" in names:
        _refuse_locks(reader, tokens)
    text = reader.remaining_text()
    tree = parse_query(text)
    changed = None if tree is None else without_compared_nulls(tree)
    if changed is not None and changed is not tree:
        text, tree = render(changed), changed
    return Select(text, names, specials, tree)


def _refuse_locks(reader: Reader, tokens: Sequence[Token]) -> None:
    """ProgrammingError for `FOR UPDATE` and its like."""
    for word, after in pairwise(tokens):
        if word.key == "for" and after.key in ("update", "share"):
            raise reader.error("rows cannot be locked: leave this out, since COMMIT finds conflicts", word)


def table_query(name_text: str, tokens: Iterable[Token], specials: tuple[Special, ...]) -> Select:
    """`SELECT * FROM name`."""
    text = f"SELECT * FROM {name_text}"
    return Select(text, identifiers(tokens), specials, parse_query(text))


def only_procedure(select: Select) -> Call | None:
    """The procedure whose result a query is about, None = it has none; ProgrammingError if it is about more."""
    functions = [special.relation for special in select.specials if isinstance(special.relation, Function)]
    procedures = [function for function in functions if is_procedure(function)]
    if not procedures:
        return None
    if len(select.specials) > 1 or not _reads_one_relation(select.tree):
        raise ProgrammingError(
            f"{procedures[0].of} changes the lake, so a query calls it once, as its only relation: SELECT … FROM "
            f"{procedures[0].of}(…)"
        )
    return Call(procedures[0].of, procedures[0].arguments, procedures[0].named)


def _reads_one_relation(tree: exp.Expression | None) -> bool:
    if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("laterals"):
        return False
    others = [node for node in tree.find_all(exp.Query, exp.UDTF) if node is not tree]
    return not others and len(list(tree.find_all(exp.Table))) == 1
