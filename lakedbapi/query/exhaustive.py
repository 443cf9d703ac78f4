"""What a query, or a statement, reads from end to end, and whether it matters in what order the rows come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from lakedbapi.model.types import Decimal, Scalar, Schema
from lakedbapi.query.filters import preserved_tables, table_name

_NARROWING = (exp.Where, exp.Having, exp.Qualify, exp.Join)
"""What conditions on a table's rows come from, be it from further out in the query or from what it is joined to."""
_VARYING = frozenset({"varchar", "json", "blob", "variant", "geometry"})
"""Types whose values have no fixed width: engines read them faster when they skip deleted rows as they go."""


def aggregated(tree: exp.Expression | None) -> Mapping[str, frozenset[str]]:
    """The tables that a query names once, to aggregate all of their rows: casefolded, each with the names of the
    columns that the query may read of it. None when it reads rows of anything else, such as a table function, which may
    be wanted in their order."""
    if tree is None or tree.find(*_NARROWING) is not None:
        return {}
    named = Counter(_source_name(table) for table in tree.find_all(exp.Table))
    found = {table_name(table) for select in tree.find_all(exp.Select) for table in _aggregated_tables(select)}
    if named.keys() - found - {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}:
        return {}
    columns = _column_names(tree)
    return {name: columns for name in found if named[name] == 1}


def cuts_unsorted(tree: exp.Expression | None) -> bool:
    """Whether LIMIT or OFFSET chooses among rows that nothing sorts: pages should find them in one order."""
    return tree is not None and any(map(_is_page, tree.find_all(exp.Query)))


def reads_all(schema: Schema, predicate: exp.Expression | None) -> bool:
    """Whether a condition of a statement leaves an engine nothing to skip rows by: it compares no column as it is."""
    if predicate is None or predicate.find(exp.Query) is not None:
        return False
    comparisons = predicate.find_all(exp.Predicate)
    if any(isinstance(side.unnest(), exp.Column) for node in comparisons for side in node.iter_expressions()):
        return False
    return fixed_width(schema, _column_names(predicate))


def fixed_width(schema: Schema, names: frozenset[str]) -> bool:
    """Whether all columns with these casefolded names have values of a fixed width."""
    return all(
        isinstance(field.type, Decimal) or (isinstance(field.type, Scalar) and field.type.name not in _VARYING)
        for field in schema.fields
        if field.name.casefold() in names
    )


def _is_page(query: exp.Query) -> bool:
    args = query.args
    if not (args.get("limit") or args.get("offset")) or args.get("order") or args.get("group") or args.get("distinct"):
        return False
    return not any(item.find(exp.AggFunc) for item in args.get("expressions") or ())


def _source_name(table: Any) -> str | None:
    """None for a table function."""
    return table_name(table) if isinstance(table.this, exp.Identifier) else None


def _column_names(tree: exp.Expression) -> frozenset[str]:
    return frozenset(column.name.casefold() for column in tree.find_all(exp.Column))


def _aggregated_tables(select: Any) -> list[exp.Table]:
    stars = (star for item in select.expressions for star in item.find_all(exp.Star))
    names_its_columns = all(isinstance(star.parent, exp.Count) for star in stars)
    return list(preserved_tables(select)) if names_its_columns and _aggregates(select) else []


def _aggregates(select: Any) -> bool:
    if select.args.get("group") or select.args.get("distinct"):
        return True
    calls = (call for item in select.expressions for call in item.find_all(exp.AggFunc))
    return any(call.find_ancestor(exp.Window, exp.Select) is select for call in calls)
