"""SQL fragments as sqlglot expressions in the DuckDB dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakedbapi.sql.dialect import LakeDialect
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.tokens import scan

_DIALECT = LakeDialect()
_SOURCE, _PRINTED = "lake_source", "lake_printed"


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
    printed = tree.sql(dialect=_DIALECT, comments=False)
    return tree.meta[_SOURCE] if tree.meta.get(_PRINTED) == printed else printed


def without_null_in_lists(tree: exp.Expression, parameters: Mapping[str, object] | None = None) -> exp.Expression:
    """`tree` with `x IN (a) OR NULL` for `x IN (a, NULL)` in conditions, and `x IN (a) OR x = f()` for `x IN (a, f())`,
    which mean the same.

    DuckDB 2.0 fails when such a list is about a field of a struct that it reads from a file. With `parameters`,
    which are known when a statement is run, some of these may be the NULL.
    """
    nulls = frozenset(name for name, value in (parameters or {}).items() if value is None)
    if (parameters is not None and not nulls) or not _null_lists(tree, nulls):
        return tree
    tree = tree.copy()
    for found in _null_lists(tree, nulls):
        known = [value.copy() for value in found.expressions if not _is_null(value, nulls) and not _is_computed(value)]
        cases: list[exp.Expression] = [exp.In(this=found.this.copy(), expressions=known)] if known else []
        for value in found.expressions:
            if _is_null(value, nulls):
                cases.append(exp.cast(exp.Null(), "BOOLEAN", dialect="duckdb"))
            elif _is_computed(value):
                cases.append(exp.EQ(this=found.this.copy(), expression=exp.paren(value.copy())))
        changed = exp.paren(exp.or_(*cases))
        if found is tree:
            return changed
        found.replace(changed)
    return tree


def _null_lists(tree: exp.Expression, nulls: Collection[str]) -> list[exp.In]:
    return [found for found in tree.find_all(exp.In) if _has_null(found, nulls) and not _is_shown(found, tree)]


def _has_null(found: exp.In, nulls: Collection[str]) -> bool:
    """Whether a list has NULL in it, or what may be NULL, and is about more than a column."""
    is_path = isinstance(found.this, (exp.Column, exp.Dot))
    if isinstance(found.this, exp.Column) and not found.this.table:
        return False
    return any(_is_null(value, nulls) or (is_path and _is_computed(value)) for value in found.expressions)


def _is_computed(value: exp.Expression) -> bool:
    """Whether it is a constant that only the engine knows, and so can be NULL."""
    inner = value.this if isinstance(value, (exp.Cast, exp.Neg)) else value
    is_plain = isinstance(inner, (exp.Literal, exp.Boolean, exp.Null)) or parameter_name(inner) is not None
    return not is_plain and inner.find(exp.Column, exp.Query, exp.Var) is None


def _is_null(value: exp.Expression, nulls: Collection[str]) -> bool:
    inner = value.this if isinstance(value, exp.Cast) else value
    return isinstance(inner, exp.Null) or parameter_name(inner) in nulls


def parameter_name(expression: exp.Expression) -> str | None:
    """`1` of `$1`, `name` of `$name`; None for any other expression."""
    if isinstance(expression, (exp.Parameter, exp.Placeholder)) and expression.this is not None:
        return expression.this if isinstance(expression.this, str) else str(expression.this.name)
    return None


def _is_shown(node: exp.Expression, tree: exp.Expression) -> bool:
    """Whether it stands in the list of a SELECT in `tree`, where it may name a column of the result."""
    inner: Any = node
    while not isinstance(inner, (exp.Where, exp.Having, exp.Qualify, exp.Join)):
        if isinstance(inner, exp.Select) or inner is tree:
            return isinstance(inner, exp.Select)
        inner = inner.parent
    return False


def _remember(tree: exp.Expression, text: str) -> exp.Expression:
    """Keep the text that `tree` was parsed from, so that `render` can give it back."""
    changed = without_null_in_lists(tree)
    if changed is not tree:
        return changed
    tree.meta[_SOURCE] = text
    tree.meta[_PRINTED] = tree.sql(dialect=_DIALECT, comments=False)
    return tree
