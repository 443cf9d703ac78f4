"""Clustered tables: the columns that OPTIMIZE lays rows out by (protocol, "Clustered Table").

They are the table's sort keys, so that files are written with their rows in this order as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.delta.actions import DomainMetadata
from lakedbapi.formats.delta.schema import physical_names
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.stats import has_bounds
from lakedbapi.formats.sort_keys import Path, path_sql, sort_paths
from lakedbapi.model.catalog import SortField, TableInfo
from lakedbapi.model.types import Scalar, Schema

DOMAIN = "delta.clustering"
FEATURE = "clustering"
PROVIDER = "lakedbapi"
"""The implementation that files say they were clustered by."""


def sort_keys(state: TableState, schema: Schema) -> tuple[SortField, ...]:
    """The keys of a table, for which the log has physical names."""
    domain = state.domains.get(DOMAIN)
    if domain is None:
        return ()
    names = physical_names(state.metadata.schema_string)
    paths = {_physical(path, names): path for path in sort_paths(schema).values()}
    return tuple(SortField(path_sql(paths[tuple(path)])) for path in _columns(domain) if tuple(path) in paths)


def domain_of(table: TableInfo, physical: Mapping[int, str], head: TableState | None) -> DomainMetadata | None:
    """The action that makes the sort keys of `table` the clustering columns; None when they are already."""
    wanted = [list(_physical(path, physical)) for path in clustered_by(table)]
    known = None if head is None else head.domains.get(DOMAIN)
    if wanted == ([] if known is None else [list(path) for path in _columns(known)]):
        return None
    text = json.dumps({"clusteringColumns": wanted, "domainName": DOMAIN}, ensure_ascii=False, separators=(",", ":"))
    return DomainMetadata(DOMAIN, text)


def clustered_by(table: TableInfo) -> Sequence[Path]:
    """The columns that the sort keys of a table are."""
    known = sort_paths(table.schema)
    paths = (known.get(key.expression.strip().casefold()) for key in table.sorting)
    return [path for path in paths if path is not None]


def of_another(providers: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which files were clustered by another implementation: one clusters its own again, and those of none."""
    others: npt.NDArray[np.bool_] = pc.fill_null(pc.not_equal(providers, PROVIDER), False).to_numpy()
    return others


def check_sort_keys(table: TableInfo) -> None:
    """NotSupportedError, with the way out, for keys that no table can be clustered by."""
    known = sort_paths(table.schema)
    for key in table.sorting:
        path = known.get(key.expression.strip().casefold())
        if path is None or key.descending or key.nulls_first:
            raise NotSupportedError(
                f"Delta table {table.name!r} cannot be sorted by {key.expression} in its own way: CLUSTER BY columns, "
                "which have no direction"
            )
        if not has_bounds(path[-1]) or path[-1].type == Scalar("boolean"):
            raise NotSupportedError(
                f"Delta table {table.name!r} cannot be clustered by {key.expression}: its type has no order in the "
                "statistics of files"
            )
    if table.sorting and table.partitioning is not None:
        raise NotSupportedError(
            f"Delta table {table.name!r} is partitioned, and cannot be clustered as well: do either"
        )


def _columns(domain: DomainMetadata) -> Sequence[Sequence[str]]:
    found: Sequence[Sequence[str]] = json.loads(domain.configuration or "{}").get("clusteringColumns") or []
    return found


def _physical(path: Path, names: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(names.get(field.id, field.name) for field in path)
