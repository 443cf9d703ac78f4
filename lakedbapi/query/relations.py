"""From the identifiers of a text to the relations that they can mean, and from a SELECT to an engine query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query, Relation, RelationName
from lakedbapi.sql.statements import Select, Special


class Filter(NamedTuple):
    """A condition that holds for every row which a query uses of a table, which it calls `alias`."""

    alias: str
    predicate: exp.Expression


def relations(
    context: Context,
    identifiers: frozenset[str],
    specials: Sequence[Special],
    *,
    predicates: Mapping[str, Filter] | None = None,
) -> dict[RelationName, Relation]:
    """Every table, view, registered Arrow object and special relation that a text with these identifiers can name.

    Names are (catalog alias, schema, name) in the catalog's own case; specials are found in the schema of the search
    path. `predicates` (by casefolded table name) limit the data files that a table's scan reads.
    """
    raise NotImplementedError


def plan(context: Context, select: Select) -> Query:
    """The engine query of a SELECT: its text, everything that it names, the parameters."""
    raise NotImplementedError
