"""SQL fragments as sqlglot expressions in the DuckDB dialect."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakedbapi.sql.dialect import LakeDialect
from lakedbapi.sql.nulls import without_compared_nulls
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.tokens import scan

_DIALECT = LakeDialect()
_SOURCE, _HASH = "lake_source", "lake_hash"


def parse_query(text: str) -> exp.Expression | None:
    """The tree of a query, None when only the engine can parse it."""
    if _is_misread(text):
        return None
    try:
        trees = _DIALECT.parse(text)
    except (SqlglotError, RecursionError):
        return None
    is_query = len(trees) == 1 and isinstance(trees[0], (exp.Query, exp.Values))
    return cast("exp.Expression", trees[0]) if is_query else None


def parse_expression(text: str) -> exp.Expression | None:
    """The tree of an expression; None when only the engine understands it."""
    tree = parse_query(f"SELECT ({text}\n)")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    wrapped = tree.expressions[0]
    found: exp.Expression = wrapped.this if isinstance(wrapped, exp.Paren) else wrapped
    return found


def _is_misread(text: str) -> bool:
    """sqlglot takes the factorial `x!` for NOT, and ALL in LIMIT ALL for a column."""
    if "!" not in text and "all" not in text.casefold():
        return False
    tokens = scan(text)
    return any(token.key == "!" or (token.key == "limit" and after.key == "all") for token, after in pairwise(tokens))


def expression(reader: Reader) -> exp.Expression:
    """All that `reader` holds as one scalar expression. What only the engine can parse becomes an `exp.Var` with the
    text."""
    if reader.done:
        raise reader.error("expected an expression")
    text = reader.remaining_text()
    tree = parse_query(f"SELECT ({text}\n)")
    if isinstance(tree, exp.Select) and len(tree.expressions) == 1 and _has_only(tree, "expressions"):
        wrapped = tree.expressions[0]
        if isinstance(wrapped, exp.Paren):
            return _remember(wrapped.this, text)
        if isinstance(wrapped, (exp.Subquery, exp.Tuple)):
            return _remember(wrapped, f"({text}\n)")
    return exp.Var(this=f"({text}\n)")


def projection(reader: Reader) -> exp.Expression:
    """One item of RETURNING: an expression with or without an alias, or a star."""
    if reader.done:
        raise reader.error("expected an expression")
    text = reader.remaining_text()
    tree = parse_query(f"SELECT {text}")
    if isinstance(tree, exp.Select) and len(tree.expressions) == 1 and _has_only(tree, "expressions"):
        return _remember(tree.expressions[0], text)
    return exp.Var(this=text)


def projections(reader: Reader) -> tuple[exp.Expression, ...]:
    return tuple(projection(item) for item in reader.items())


def relation(reader: Reader) -> exp.Expression:
    """One item of FROM, with its alias and joins attached."""
    if reader.done:
        raise reader.error("expected a table")
    text = reader.remaining_text()
    tree = parse_query(f"SELECT * FROM {text}")
    source = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    if tree is not None and source is not None and _has_only(tree, "expressions", "from_", "joins"):
        item, joins = source.this, tree.args.get("joins")
        if not joins:
            return _remember(item, text)
        if isinstance(item, (exp.Table, exp.Subquery)) and not item.args.get("joins"):
            item.set("joins", joins)
            return _remember(item, text)
    return exp.Var(this=text)


def relations(reader: Reader) -> tuple[exp.Expression, ...]:
    """The items of FROM that commas separate."""
    return tuple(relation(item) for item in reader.items())


def common_tables(text: str) -> exp.With:
    """`WITH a AS (…), …`."""
    tree = parse_query(f"{text} SELECT 1")
    ctes = tree.args.get("with_") if tree is not None else None
    if isinstance(ctes, exp.With):
        return cast("exp.With", _remember(ctes, text))
    return exp.With(expressions=[exp.Var(this=text[len("with") :])])


def _has_only(tree: exp.Expression, *names: str) -> bool:
    return all(name in names for name, value in tree.args.items() if value)


def has_columns(tree: exp.Expression) -> bool:
    """Whether a value depends on a relation: it has a column or a subquery, or nobody can tell."""
    return isinstance(tree, exp.Var) or tree.find(exp.Column, exp.Query) is not None


def render(tree: exp.Expression) -> str:
    """DuckDB's SQL of a tree: the text that was parsed as long as nobody has changed the tree."""
    if tree.meta.get(_HASH) == hash(tree):
        return str(tree.meta[_SOURCE])
    return tree.sql(dialect=_DIALECT, comments=False)


def _remember(tree: exp.Expression, text: str) -> exp.Expression:
    """Keep the text that `tree` was parsed from, so that `render` can give it back."""
    changed = without_compared_nulls(tree)
    if changed is not tree:
        return changed
    tree.meta[_SOURCE] = text
    tree.meta[_HASH] = hash(tree)
    return tree
