"""Catalog rows of files: what a commit enters for a new data file or delete file, and for one that is to be removed."""

from __future__ import annotations

from lakedbapi.errors import InternalError
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.delete_files import WrittenDeletes
from lakedbapi.formats.ducklake.files import save_name_mapping
from lakedbapi.formats.ducklake.paths import relative_to
from lakedbapi.model.changes import WrittenFile


def add_data_file(
    attempt: Attempt,
    table_id: int,
    directory: str,
    file: WrittenFile,
    *,
    row_id_start: int | None = None,
    begin_snapshot: int | None = None,
    partial_max: int | None = None,
) -> int:
    """Returns the new file's id. `directory` is the table's; `begin_snapshot` is the new one if not given.

    `partial_max` is the last snapshot of rows that have theirs embedded.
    """
    _check_encrypted(attempt, file.path, file.encryption_key)
    tables = attempt.tables
    mapping_id = None if file.names is None else save_name_mapping(attempt, table_id, file.names)
    file_id = attempt.ids.file_id()
    path, is_relative = relative_to(directory, file.path)
    partition_id = file.partition_id
    if partition_id is not None:
        partition_id = attempt.partition_ids.get(partition_id, partition_id)
    attempt.add(
        tables.data_file,
        data_file_id=file_id,
        table_id=table_id,
        begin_snapshot=attempt.snapshot_id if begin_snapshot is None else begin_snapshot,
        path=path,
        path_is_relative=is_relative,
        file_format="parquet",
        record_count=file.record_count,
        file_size_bytes=file.file_size_bytes,
        footer_size=file.footer_size,
        row_id_start=row_id_start,
        partition_id=partition_id,
        encryption_key=file.encryption_key,
        mapping_id=mapping_id,
        partial_max=partial_max,
        row_group_count=file.row_group_count,
    )
    for index, value in enumerate(file.partition_values if partition_id is not None else ()):
        attempt.add(
            tables.file_partition_value,
            data_file_id=file_id,
            table_id=table_id,
            partition_key_index=index,
            partition_value=value,
        )
    for field_id, stats in sorted(file.stats.items()):
        attempt.add(
            tables.file_column_stats,
            data_file_id=file_id,
            table_id=table_id,
            column_id=field_id,
            column_size_bytes=stats.size_bytes,
            value_count=stats.value_count,
            null_count=stats.null_count,
            min_value=stats.lower,
            max_value=stats.upper,
            contains_nan=stats.has_nan,
            min_is_exact=stats.exact[0] if stats.lower is not None else None,
            max_is_exact=stats.exact[1] if stats.upper is not None else None,
        )
    return file_id


def add_delete_file(
    attempt: Attempt, table_id: int, directory: str, data_file_id: int, written: WrittenDeletes
) -> None:
    """`directory` is the table's."""
    _check_encrypted(attempt, written.path, written.encryption_key)
    path, is_relative = relative_to(directory, written.path)
    attempt.used_files.add(written.path)
    attempt.add(
        attempt.tables.delete_file,
        delete_file_id=attempt.ids.file_id(),
        table_id=table_id,
        begin_snapshot=written.begin_snapshot,
        data_file_id=data_file_id,
        path=path,
        path_is_relative=is_relative,
        format=written.format,
        delete_count=written.delete_count,
        file_size_bytes=written.file_size_bytes,
        footer_size=written.footer_size,
        encryption_key=written.encryption_key,
        partial_max=written.partial_max,
        row_group_count=written.row_group_count,
    )


def _check_encrypted(attempt: Attempt, path: str, key: str | None) -> None:
    if attempt.encrypted and key is None:
        raise InternalError(f"{path}: a file that is not encrypted would get into an encrypted lake")


def schedule(attempt: Attempt, data_path: str, file_id: int, path: str) -> None:
    """Have a file (full path) removed by a later cleanup. Its entry is to be deleted by the caller."""
    path, is_relative = relative_to(data_path, path)
    attempt.add(
        attempt.tables.files_scheduled_for_deletion,
        data_file_id=file_id,
        path=path,
        path_is_relative=is_relative,
        schedule_start=attempt.time,
    )
