"""Comparisons with NULL that DuckDB fails on, in words that mean the same.

DuckDB 2.0 ends with an internal error where `IN` or `IS DISTINCT FROM` compares a field of a struct, which it reads
from a file, with NULL. Any expression may turn out to be such a field, behind a subquery or a view, so all are changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlglot import exp

_CONDITIONS = (exp.Where, exp.Having, exp.Qualify, exp.Join)
_FIELD_FUNCTIONS = frozenset(("struct_extract", "array_extract"))


def without_compared_nulls(
    tree: exp.Expression, parameters: Mapping[str, object] | None = None, unknown: Collection[str] = ()
) -> exp.Expression:
    """`tree` itself when nothing in it compares with NULL, or with a constant that only the engine knows.

    `x IN (a, NULL)` becomes `x IN (a) OR NULL`, and `x IN (a)` where only true counts; `x IN (a, f())` becomes
    `x IN (a) OR x = f()`; `x IS DISTINCT FROM NULL` becomes `x IS NOT NULL`, and `x IS DISTINCT FROM f()` has its sides
    exchanged, which keeps it from the reader. With `parameters`, which are known when a statement is run, some of these
    may be the NULL. `unknown` are casefolded names of columns that may stand for any of it: the parameters of a macro.
    """
    nulls = frozenset(name for name, value in (parameters or {}).items() if value is None)
    if (parameters is not None and not nulls) or next(_comparisons(tree, nulls, unknown), None) is None:
        return tree
    tree = tree.copy()
    for found in list(_comparisons(tree, nulls, unknown)):
        changed = _list(found, nulls, unknown) if isinstance(found, exp.In) else _distinct(found, nulls, unknown)
        if found is tree:
            return changed
        found.replace(changed)
    return tree


def parameter_name(expression: exp.Expression) -> str | None:
    """`1` of `$1`, `name` of `$name`; None for any other expression."""
    if isinstance(expression, (exp.Parameter, exp.Placeholder)) and expression.this is not None:
        return expression.this if isinstance(expression.this, str) else str(expression.this.name)
    return None


def _comparisons(tree: exp.Expression, nulls: Collection[str], unknown: Collection[str]) -> Iterator[Any]:
    """Innermost first, so that each can be replaced."""
    found = [node for node in tree.find_all(exp.In, exp.NullSafeEQ, exp.NullSafeNEQ) if _fails(node, nulls, unknown)]
    return (node for node in reversed(found) if not _names_a_column(node, tree))


def _fails(node: Any, nulls: Collection[str], unknown: Collection[str]) -> bool:
    if isinstance(node, exp.In):
        values, is_field = node.expressions, _is_field(node.this)
    else:
        values, is_field = [node.expression], not isinstance(node.this, exp.Tuple)
    return any(_is_null(value, nulls) or (is_field and _is_computed(value, unknown)) for value in values)


def _list(found: exp.In, nulls: Collection[str], unknown: Collection[str]) -> exp.Expression:
    known = [v.copy() for v in found.expressions if not _is_null(v, nulls) and not _is_computed(v, unknown)]
    cases: list[exp.Expression] = [exp.In(this=found.this.copy(), expressions=known)] if known else []
    for value in found.expressions:
        if _is_computed(value, unknown) and not _is_null(value, nulls):
            cases.append(exp.EQ(this=found.this.copy(), expression=exp.paren(value.copy())))
    if any(_is_null(value, nulls) for value in found.expressions) and not (cases and _only_true_counts(found)):
        cases.append(exp.cast(exp.Null(), "BOOLEAN", dialect="duckdb"))
    return exp.paren(exp.or_(*cases))


def _distinct(found: exp.Binary, nulls: Collection[str], unknown: Collection[str]) -> exp.Expression:
    value, constant = found.this.copy(), found.expression.copy()
    if not _is_null(constant, nulls) and unknown and _is_computed(value, unknown):
        # Either side may be the NULL, or the field.
        equal = exp.Coalesce(
            this=exp.EQ(this=exp.paren(value), expression=exp.paren(constant)), expressions=[exp.false()]
        )
        case = exp.Case().when(exp.paren(constant).is_(exp.Null()), exp.paren(value).is_(exp.Null())).else_(equal)
        return exp.paren(case if isinstance(found, exp.NullSafeEQ) else exp.not_(exp.paren(case)))
    if not _is_null(constant, nulls):
        return exp.paren(type(found)(this=exp.paren(constant), expression=value))
    is_null = exp.Is(this=exp.paren(value), expression=exp.Null())
    return exp.paren(is_null if isinstance(found, exp.NullSafeEQ) else exp.not_(is_null))


def _is_field(node: Any) -> bool:
    """Whether it may be a field of a struct, and nothing that it costs to compute twice."""
    parts = list(node.find_all(exp.Func, exp.Query, exp.Tuple, exp.Var))
    return node.find(exp.Column) is not None and all(
        isinstance(part, exp.Cast) or part.name.casefold() in _FIELD_FUNCTIONS for part in parts
    )


def _is_computed(value: Any, unknown: Collection[str]) -> bool:
    """Whether it is a constant that only the engine knows, and so can be NULL."""
    inner = _bare(value)
    is_plain = isinstance(inner, (exp.Literal, exp.Boolean, exp.Null)) or parameter_name(inner) is not None
    columns = inner.find_all(exp.Column)
    return (
        not is_plain
        and inner.find(exp.Query, exp.Var) is None
        and all(column.parts[0].name.casefold() in unknown for column in columns)
    )


def _is_null(value: Any, nulls: Collection[str]) -> bool:
    inner = _bare(value)
    return isinstance(inner, exp.Null) or parameter_name(inner) in nulls


def _bare(value: Any) -> Any:
    """What a sign, parentheses and casts that cannot fail are around."""
    while isinstance(value, (exp.Cast, exp.Neg, exp.Paren)) and not isinstance(value, exp.TryCast):
        value = value.this
    return value


def _only_true_counts(node: Any) -> bool:
    """Whether NULL is as good as false for the condition that it stands in."""
    while isinstance(node.parent, (exp.And, exp.Or, exp.Paren)):
        node = node.parent
    return isinstance(node.parent, exp.Where)


def _names_a_column(node: Any, tree: exp.Expression) -> bool:
    """Whether it stands in the list of a SELECT, where its text is the name of a column of the result."""
    while node is not tree and not isinstance(node, (exp.Alias, *_CONDITIONS)):
        if isinstance(node.parent, exp.Select):
            return node.arg_key == "expressions" and not _is_renamed(node.parent)
        node = node.parent
    return False


def _is_renamed(select: exp.Select) -> bool:
    """Whether its columns get their names from outside, as in `(SELECT …) AS t(a, b)`."""
    alias = select.parent.args.get("alias") if isinstance(select.parent, (exp.Subquery, exp.CTE)) else None
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)
