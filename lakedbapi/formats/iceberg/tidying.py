"""Commits that change how a snapshot is written down, and neither its rows nor its data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakedbapi.formats.iceberg.attempt import Attempt
from lakedbapi.formats.iceberg.commit import TableCommit
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog


def tidy(
    catalog: IcebergCatalog, table: TableInfo, version: TableVersion, *, manifests: bool = False, deletes: bool = False
) -> Attempt:
    """Write manifests, or position delete files, anew as fewer ones, as `Plan` says; the attempt tells what was done.

    There is no snapshot when there is nothing to do.
    """
    assert isinstance(catalog.source, CatalogSource)
    plan = Plan(
        namespace=catalog.named(table.schema_id),
        old=table,
        new=table,
        base=version,
        operations=(Operation("optimize", table.id),),
        rewrites_manifests=manifests,
        rewrites_deletes=deletes,
    )
    commit = TableCommit(catalog, catalog.source, plan, "", version.storage)
    commit.commit()
    return commit.attempt
