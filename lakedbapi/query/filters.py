"""The conditions of a query that its tables' files can be pruned by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlglot import exp


class Filter(NamedTuple):
    """A condition that holds for every row which a query uses of a table, which it calls `alias`."""

    alias: str
    predicate: exp.Expression


_PLAIN_JOINS = frozenset({"", "INNER", "CROSS", "OUTER"})
_NAMING_FUNCTIONS = frozenset({"query", "query_table"})
"""Table functions that find tables by name in a text."""


def filters(tree: exp.Expression | None) -> dict[str, Filter]:
    """By casefolded table name: the condition for a table that the query names once, in a place where that is sound.

    Sound is: the table stands in FROM, or is joined to it so that it cannot be NULL-extended or decide about other
    rows, and the condition is the WHERE of the same SELECT.
    """
    if tree is None or any(str(call.this).casefold() in _NAMING_FUNCTIONS for call in tree.find_all(exp.Anonymous)):
        return {}
    named = Counter(table_name(table) for table in tree.find_all(exp.Table))
    found = {}
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        if where is not None:
            for table in preserved_tables(select):
                if named[table_name(table)] == 1:
                    found[table_name(table)] = Filter(table.alias_or_name, where.this)
    return found


def preserved_tables(select: Any) -> Iterator[exp.Table]:
    """The plain tables of a SELECT's FROM of which each row appears as it is, or not at all."""
    source, joins = select.args.get("from_"), select.args.get("joins") or []
    if source is None or select.args.get("sample") or not all(map(_is_plain, joins)):
        return
    items = [source.this, *(join.this for join in joins if not join.side)]
    for item in items:
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and not _is_altered(item):
            yield item


def _is_plain(join: Any) -> bool:
    """Not RIGHT, FULL, NATURAL, USING, nor a join in which single rows decide: SEMI, ANTI, ASOF, POSITIONAL."""
    is_inner_or_left = join.side in ("", "LEFT") and (join.kind or "") in _PLAIN_JOINS
    return is_inner_or_left and not join.method and not join.args.get("using")


def _is_altered(table: Any) -> bool:
    """Whether the rows or column names are not the table's own: sampled, pivoted, renamed, joined in brackets."""
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return True
    return any(value for name, value in table.args.items() if name not in ("this", "db", "catalog", "alias"))


def table_name(table: Any) -> str:
    """The casefolded last part of a table's name; `FROM 'x'` names x too."""
    return str(table.name).strip("'").casefold()
