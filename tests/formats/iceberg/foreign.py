"""Delete files of another writer, in tables that are written here: what no statement of ours makes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.typedef import Record

import lakedbapi
from lakedbapi.deletes.parquet import ICEBERG_PATH_FIELD, ICEBERG_POSITION_FIELD
from lakedbapi.formats.iceberg.attempt import Attempt
from lakedbapi.formats.iceberg.catalog import IcebergCatalog
from lakedbapi.formats.iceberg.definition import with_unpartitioned
from lakedbapi.formats.iceberg.files import Partition
from lakedbapi.formats.iceberg.manifests import DELETES, EQUALITY_DELETES, POSITION_DELETES
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion


class Foreign(Attempt):
    """A commit that adds nothing but delete files."""

    def __init__(self, version: TableVersion, name: str) -> None:
        table = version.info(0, 0, name)
        super().__init__(
            Plan(namespace=("main",), old=table, new=table, base=version), version, version.storage, version.name
        )
        self.version_before = version

    def equality(self, columns: Mapping[str, Sequence[Any]], partition: Partition | None = None) -> None:
        """Delete the rows that have these values, in one partition or everywhere."""
        schema = self.version_before.point.schema
        arrow = schema_to_pyarrow(schema)
        fields = [arrow.field(name) for name in columns]
        rows = pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields))
        ids = [schema.find_field(name).field_id for name in columns]
        if partition is None:
            self._definition, spec_id = with_unpartitioned(self._definition)
            partition = Partition(spec_id, ())
        self._add_file(EQUALITY_DELETES, rows, partition, equality_ids=ids)

    def positions(self, deleted: Mapping[str, Sequence[int]], partition: Partition) -> None:
        """Delete rows of data files of one partition, all in one file."""
        found = sorted((path, position) for path, positions in deleted.items() for position in positions)
        fields = [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(ICEBERG_PATH_FIELD)}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(ICEBERG_POSITION_FIELD)}),
        ]
        rows = pa.table([list(column) for column in zip(*found, strict=True)], schema=pa.schema(fields))
        bounds = {
            "lower_bounds": {ICEBERG_PATH_FIELD: found[0][0].encode()},
            "upper_bounds": {ICEBERG_PATH_FIELD: found[-1][0].encode()},
        }
        self._add_file(POSITION_DELETES, rows, partition, **bounds)

    def _add_file(self, content: int, rows: pa.Table, partition: Partition, **more: Any) -> None:
        buffer = io.BytesIO()
        pq.write_table(rows, buffer)
        path = self._places.new_data("foreign.parquet")
        self._write(path, buffer.getvalue())
        entry = {
            "content": content,
            "file_path": path,
            "file_format": "PARQUET",
            "partition": Record(*partition.values),
            "record_count": rows.num_rows,
            "file_size_in_bytes": len(buffer.getvalue()),
            "content_size_in_bytes": None,
            **more,
        }
        self._add(DELETES, partition.spec_id, entry)


def newest(connection: lakedbapi.Connection, table: str = "t") -> TableVersion:
    """The version of a table that is there now."""
    version = _catalog(connection).load(("main",), table, None)
    assert version is not None
    return version


def commit(connection: lakedbapi.Connection, build: Callable[[Foreign], None], table: str = "t") -> int:
    """Beside the transaction of the connection; the new snapshot."""
    catalog = _catalog(connection)
    assert isinstance(catalog.source, CatalogSource)
    version = newest(connection, table)
    attempt = Foreign(version, table)
    build(attempt)
    changes = attempt.changes()
    assert changes is not None
    catalog.source.commit(("main", table), *changes, before=version)
    return attempt.snapshot_id


def _catalog(connection: lakedbapi.Connection) -> IcebergCatalog:
    (catalog,) = connection._session._catalogs.values()  # type: ignore[attr-defined]
    assert isinstance(catalog, IcebergCatalog)
    return catalog
