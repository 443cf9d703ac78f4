"""Reading a lake through the format and the engine, without any SQL layer between."""

from __future__ import annotations

from typing import Any

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi import formats, url
from lakedbapi.engine.base import Query, RelationName, ScanRelation
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.formats.base import Catalog, Snapshot
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.model.catalog import AsOf, TableInfo
from lakedbapi.model.scan import Scan


def open_lake(place: Place, *, create: bool = False, **options: str) -> DuckLakeCatalog:
    parsed = url.parse(place.url)
    catalog = formats.get("ducklake").open(
        parsed.location, {**parsed.format_options, **options}, read_only=False, create=create
    )
    assert isinstance(catalog, DuckLakeCatalog)
    return catalog


def find(snapshot: Snapshot, name: str, schema: str = "main") -> TableInfo:
    schema_id = next(info.id for info in snapshot.schemas().values() if info.name == schema)
    return next(table for table in snapshot.tables().values() if (table.schema_id, table.name) == (schema_id, name))


def count(snapshot: Snapshot, name: str = "t") -> int:
    """Live rows, by the catalog's numbers only."""
    table = find(snapshot, name)
    files = snapshot.files(table)
    in_files = sum(files.column("record_count").to_pylist()) - sum(files.column("deleted_count").to_pylist())
    return in_files + sum(group.rows.num_rows for group in snapshot.row_groups(table))


def texts(catalog: Catalog, snapshot: Snapshot, name: str = "t") -> list[tuple[Any, ...]]:
    """All rows, each value as DuckDB casts it to VARCHAR, in the order of these texts."""
    table = find(snapshot, name)
    scan = Scan(
        table.schema,
        tuple(snapshot.file_groups(table, snapshot.files(table))),
        tuple(snapshot.row_groups(table)),
    )
    engine = DuckDBEngine(catalog.data_roots(), [catalog.storage.filesystem], ["lake"])
    try:
        relation = RelationName("lake", "main", "t")
        query = Query(as_texts("lake.main.t"), {relation: ScanRelation(scan)}, search_path=("lake", "main"))
        return [tuple(row.values()) for row in engine.fetch(query).to_pylist()]
    finally:
        engine.close()


def as_texts(source: str) -> str:
    return f"SELECT * FROM (SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {source}) ORDER BY ALL"


def assert_same_history(catalog: Catalog, peer: Peer, name: str = "t") -> None:
    """At every kept version the table, if it is there, has the rows that the peer sees."""
    for line in catalog.history():
        snapshot = catalog.as_of(AsOf(version=line.id))
        if name in {table.name for table in snapshot.tables().values()}:
            theirs = peer.rows(as_texts(f"lake.{name} AT (VERSION => {line.id})"))
            ours = texts(catalog, snapshot, name)
            assert ours == theirs, f"version {line.id}"
            assert count(snapshot, name) == len(theirs), f"version {line.id}"
