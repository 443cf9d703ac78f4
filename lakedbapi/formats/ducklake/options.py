"""The rows of `ducklake_metadata`: facts about the catalog, and options of the catalog, its schemas and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

DEFAULTS: Mapping[str, str] = {
    "data_inlining_row_limit": "10",
    "target_file_size": "512000000",
    "parquet_compression": "snappy",
    "parquet_version": "V1",
    "parquet_row_group_size": "122880",
    "hive_file_pattern": "true",
    "require_commit_message": "false",
    "rewrite_delete_threshold": "0.95",
    "delete_older_than": "2 days",
    "auto_compact": "true",
    "per_thread_output": "false",
    "sort_on_insert": "true",
    "write_deletion_vectors": "false",
}
FACTS = frozenset({"version", "created_by", "data_path", "encrypted"})
"""Keys that describe the catalog and are no options."""


@dataclass(frozen=True)
class Options:
    """What is stored, as of one read of the catalog. All values are text; unknown keys are kept."""

    catalog: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    tables: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str | None, int | None]]) -> Options:
        """From rows (key, value, scope, scope_id)."""
        catalog: dict[str, str] = {}
        schemas: dict[int, dict[str, str]] = {}
        tables: dict[int, dict[str, str]] = {}
        for key, value, scope, scope_id in rows:
            if scope == "schema" and scope_id is not None:
                schemas.setdefault(scope_id, {})[key] = value
            elif scope == "table" and scope_id is not None:
                tables.setdefault(scope_id, {})[key] = value
            else:
                catalog[key] = value
        return cls(catalog, schemas, tables)

    def lookup(self, name: str, schema_id: int | None, table_id: int | None, session: Mapping[str, str]) -> str | None:
        """The value for a table, else for its schema, else for the catalog, else of the session, else the default."""
        scopes = (self.tables.get(table_id or 0, {}), self.schemas.get(-1 if schema_id is None else schema_id, {}))
        for values in (*scopes, self.catalog, session):
            if name in values:
                return values[name]
        if name == "hive_file_pattern" and self.catalog.get("encrypted") == "true":
            return "false"  # Folder names would tell what the files hide.
        return DEFAULTS.get(name)
