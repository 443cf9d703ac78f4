"""What the metadata of a table says of its manifests, partitions, branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from lakedbapi.formats.iceberg.table import TableVersion


def manifests(version: TableVersion) -> pa.Table:
    """The manifests of the snapshot."""
    rows = [
        {
            "path": version.paths.full(manifest.path),
            "content": "deletes" if manifest.content else "data",
            "length": manifest.length,
            "partition_spec_id": manifest.spec_id,
            "sequence_number": manifest.sequence_number,
            "added_snapshot_id": manifest.added_snapshot_id,
            "added_files_count": manifest.counts[0],
            "existing_files_count": manifest.counts[1],
            "deleted_files_count": manifest.counts[2],
        }
        for manifest in version.manifests
    ]
    return pa.Table.from_pylist(rows, _MANIFESTS)


def partitions(version: TableVersion) -> pa.Table:
    """The partitions with live data files: stored values as text, by key."""
    data, live = version.live.data, version.live
    grouped = data.group_by("scope").aggregate(
        [("record_count", "sum"), ("record_count", "count"), ("file_size_bytes", "sum")]
    )
    counted = live.deletes.group_by("scope").aggregate([("scope", "count")])
    deletes = dict(zip(counted.column("scope").to_pylist(), counted.column("scope_count").to_pylist(), strict=True))
    rows = []
    for group in grouped.to_pylist():
        partition = live.partitions[group["scope"]]
        names = [field.name for field in version.specs[partition.spec_id].fields]
        values = [None if value is None else str(value) for value in partition.values]
        rows.append(
            {
                "partition_id": group["scope"],
                "partition_spec_id": partition.spec_id,
                "partition": list(zip(names, values, strict=False)),
                "record_count": group["record_count_sum"],
                "file_count": group["record_count_count"],
                "file_size_bytes": group["file_size_bytes_sum"],
                "delete_file_count": deletes.get(group["scope"], 0),
            }
        )
    return pa.Table.from_pylist(rows, _PARTITIONS)


def refs(version: TableVersion) -> pa.Table:
    """Branches and tags."""
    rows = [
        {
            "name": name,
            "type": ref.snapshot_ref_type.value,
            "snapshot_id": ref.snapshot_id,
            "max_ref_age_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in sorted(version.metadata.refs.items())
    ]
    return pa.Table.from_pylist(rows, _REFS)


_TEXT, _NUMBER = pa.string(), pa.int64()
_MANIFESTS = pa.schema(
    [
        ("path", _TEXT),
        ("content", _TEXT),
        ("length", _NUMBER),
        ("partition_spec_id", _NUMBER),
        ("sequence_number", _NUMBER),
        ("added_snapshot_id", _NUMBER),
        ("added_files_count", _NUMBER),
        ("existing_files_count", _NUMBER),
        ("deleted_files_count", _NUMBER),
    ]
)
_PARTITIONS = pa.schema(
    [
        ("partition_id", _NUMBER),
        ("partition_spec_id", _NUMBER),
        ("partition", pa.map_(_TEXT, _TEXT)),
        ("record_count", _NUMBER),
        ("file_count", _NUMBER),
        ("file_size_bytes", _NUMBER),
        ("delete_file_count", _NUMBER),
    ]
)
_REFS = pa.schema(
    [
        ("name", _TEXT),
        ("type", _TEXT),
        ("snapshot_id", _NUMBER),
        ("max_ref_age_ms", _NUMBER),
        ("min_snapshots_to_keep", _NUMBER),
        ("max_snapshot_age_ms", _NUMBER),
    ]
)

METADATA_TABLES: Mapping[str, Callable[[TableVersion], pa.Table]] = {
    "manifests": manifests,
    "partitions": partitions,
    "refs": refs,
}
