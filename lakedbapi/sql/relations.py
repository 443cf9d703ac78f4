"""Where in a text relations are named: the places after FROM, JOIN, INTO and so on, found from tokens alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakedbapi.sql.keywords import QUERY_STARTS, words
from lakedbapi.sql.tokens import Token

_CLAUSES_AFTER_FROM = words(
    """
    select where group having order limit offset window qualify union except intersect set when returning
    """
)
_VERBS = words("into update table describe desc summarize truncate pivot unpivot pivot_wider pivot_longer")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


@dataclass
class _Frame:
    """What a bracket holds: an expression, where FROM is no clause (`extract(year FROM x)`), or a query or its
    relations."""

    is_query: bool
    in_from: bool = False
    expects_relation: bool = False


def relation_starts(tokens: Sequence[Token]) -> Iterator[int]:
    """Indexes of the tokens that a relation in a query starts with: a name, a string, a table function.

    It errs on the side of yielding too much.
    """
    frames = [_Frame(is_query=True)]
    for index, token in enumerate(tokens):
        frame = frames[-1]
        following = tokens[index + 1].key if index + 1 < len(tokens) else ""
        if token.key in _OPENING:
            in_group = token.key == "(" and frame.expects_relation
            is_query = token.key == "(" and (in_group or following in QUERY_STARTS or following == "(")
            frames.append(_Frame(is_query, in_from=in_group, expects_relation=in_group))
            frame.expects_relation = False
        elif token.key in _CLOSING:
            if len(frames) > 1:
                frames.pop()
        elif _continues_from(tokens, index, frame):
            frame.in_from = frame.expects_relation = True
        elif token.key == "using":
            frame.in_from = frame.expects_relation = following not in ("(", "sample") or _opens_query(tokens, index + 1)
        elif token.key in _VERBS and following != "(":
            frame.expects_relation = True
        elif token.key in _CLAUSES_AFTER_FROM or (token.key == "values" and index > 0 and tokens[index - 1].key == "("):
            frame.in_from = frame.expects_relation = False
        elif frame.expects_relation and token.key not in ("lateral", "only"):
            if following == ":":  # a prefix alias: FROM alias: relation
                continue
            if token.key != ":":
                frame.expects_relation = False
                yield index


def _continues_from(tokens: Sequence[Token], index: int, frame: _Frame) -> bool:
    key = tokens[index].key
    if key == "from":
        return frame.is_query and not _is_distinct_from(tokens, index)
    return key == "join" or (key == "," and frame.in_from)


def _is_distinct_from(tokens: Sequence[Token], index: int) -> bool:
    return index > 1 and tokens[index - 1].key == "distinct" and tokens[index - 2].key in ("is", "not")


def _opens_query(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index].key == "(" and tokens[index + 1].key in QUERY_STARTS | {"("}
