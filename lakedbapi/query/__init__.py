"""SELECT: what names mean, which files have to be read, and the tables that describe a lake."""

from lakedbapi.query.calls import call_as_select, called_catalog
from lakedbapi.query.constants import constant, evaluate
from lakedbapi.query.explain import explain, scan_lines
from lakedbapi.query.filters import Filter
from lakedbapi.query.history import SNAPSHOT_TYPES, describe_history, snapshot_rows
from lakedbapi.query.names import (
    ResolvedTable,
    find_relation,
    naming_unknown,
    nested_schemas,
    resolve_catalog,
    resolve_relation,
    resolve_schema,
    resolve_schema_path,
    resolve_table,
    resolve_view,
)
from lakedbapi.query.plan import nullability, plan
from lakedbapi.query.prune import Pruning, prune
from lakedbapi.query.relations import relations
from lakedbapi.query.show import describe, show

__all__ = [
    "SNAPSHOT_TYPES",
    "Filter",
    "Pruning",
    "ResolvedTable",
    "call_as_select",
    "called_catalog",
    "constant",
    "describe",
    "describe_history",
    "evaluate",
    "explain",
    "find_relation",
    "naming_unknown",
    "nested_schemas",
    "nullability",
    "plan",
    "prune",
    "relations",
    "resolve_catalog",
    "resolve_relation",
    "resolve_schema",
    "resolve_schema_path",
    "resolve_table",
    "resolve_view",
    "scan_lines",
    "show",
    "snapshot_rows",
]
