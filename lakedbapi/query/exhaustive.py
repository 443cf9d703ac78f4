"""The tables that a query reads from end to end, whatever order their rows come in."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlglot import exp

from lakedbapi.query.filters import preserved_tables, table_name

_NARROWING = (exp.Where, exp.Having, exp.Qualify, exp.Join)
"""What conditions on a table's rows come from, be it from further out in the query or from what it is joined to."""


def exhaustive(tree: exp.Expression | None) -> frozenset[str]:
    """Casefolded names of tables that the query names once, to aggregate all of their rows."""
    if tree is None or tree.find(*_NARROWING) is not None:
        return frozenset()
    named = Counter(table_name(table) for table in tree.find_all(exp.Table))
    found = (table_name(table) for select in tree.find_all(exp.Select) for table in _aggregated_tables(select))
    return frozenset(name for name in found if named[name] == 1)


def _aggregated_tables(select: Any) -> list[exp.Table]:
    return list(preserved_tables(select)) if _aggregates(select) else []


def _aggregates(select: Any) -> bool:
    if select.args.get("group") or select.args.get("distinct"):
        return True
    calls = (call for item in select.expressions for call in item.find_all(exp.AggFunc))
    return any(call.find_ancestor(exp.Window, exp.Select) is select for call in calls)
