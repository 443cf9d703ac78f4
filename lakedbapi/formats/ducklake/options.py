"""The rows of `ducklake_metadata`: facts about the catalog, and options of the catalog, its schemas and its tables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import OptionInfo, SchemaInfo, TableInfo
from lakedbapi.model.table_options import CODECS, parquet_version

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

    def listed(self, schemas: Mapping[int, SchemaInfo], tables: Mapping[int, TableInfo]) -> list[OptionInfo]:
        """Everything that is stored for the catalog and for these schemas and tables, by name."""
        return sorted(self._listed(schemas, tables), key=lambda o: (o.name, o.schema or "", o.table or ""))

    def _listed(self, schemas: Mapping[int, SchemaInfo], tables: Mapping[int, TableInfo]) -> Iterator[OptionInfo]:
        for name, value in self.catalog.items():
            yield OptionInfo(name, value)
        for id in self.schemas.keys() & schemas.keys():
            for name, value in self.schemas[id].items():
                yield OptionInfo(name, value, schemas[id].name)
        for id in self.tables.keys() & tables.keys():
            for name, value in self.tables[id].items():
                yield OptionInfo(name, value, schemas[tables[id].schema_id].name, tables[id].name)

    def lookup(self, name: str, schema_id: int | None, table_id: int | None, session: Mapping[str, str]) -> str | None:
        """The value for a table, else for its schema, else for the catalog, else of the session, else the default."""
        scopes = (self.tables.get(table_id or 0, {}), self.schemas.get(-1 if schema_id is None else schema_id, {}))
        for values in (*scopes, self.catalog, session):
            if name in values:
                return values[name]
        if name == "hive_file_pattern" and self.catalog.get("encrypted") == "true":
            return "false"  # Folder names would tell what the files hide.
        return DEFAULTS.get(name)


def checked(name: str, value: str | None) -> str | None:
    """An option's value as DuckDB stores it; None = the option is to be unset. ProgrammingError if it cannot be."""
    if name in FACTS:
        raise ProgrammingError(f"{name!r} describes the catalog and is no option that can be set")
    rule = _RULES.get(name)
    if rule is None and not name.startswith(_OWN):
        raise ProgrammingError(f"there is no option {name!r}; there are: {', '.join(_RULES)}")
    if value is None or rule is None:
        return value
    stored = rule(value.strip())
    if stored is None:
        raise ProgrammingError(f"option {name} cannot be {value!r}: {_HINTS[rule]}")
    if (name, stored) == ("per_thread_output", "true"):
        text = "option per_thread_output has an effect in DuckDB only: a statement here writes as few files as it can"
        warnings.warn(text, stacklevel=2)
    return stored


_OWN = "lake."
"""How options begin that other programs do not know and ignore."""
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b)?", re.IGNORECASE)
_TIME_UNIT = "(?:year|month|week|day|hour|minute|second|millisecond|microsecond)s?"
_INTERVAL = re.compile(rf"(?:\d+(?:\.\d+)?\s*{_TIME_UNIT}\s*|\d+:\d\d(?::\d\d)?\s*)+", re.IGNORECASE)
_FLAGS = {**dict.fromkeys("true t yes y on 1".split(), "true"), **dict.fromkeys("false f no n off 0".split(), "false")}


def _count(value: str) -> str | None:
    return str(int(value)) if value.isdecimal() else None


def _positive(value: str) -> str | None:
    return str(int(value)) if value.isdecimal() and int(value) else None


def _size(value: str) -> str | None:
    found = _SIZE.fullmatch(value)
    if found is None:
        return None
    unit = (found[2] or "b").casefold()
    base = 1024 if "i" in unit else 1000
    size = int(float(found[1]) * base ** _UNITS[unit.replace("i", "")])
    return str(size) if 0 < size < 1 << 63 else None


def _codec(value: str) -> str | None:
    name = value.casefold()
    return name if name in CODECS else None


def _fraction(value: str) -> str | None:
    try:
        return value if 0 <= float(value) <= 1 else None
    except ValueError:
        return None


def _interval(value: str) -> str | None:
    return value if _INTERVAL.fullmatch(value) else None


def _flag(value: str) -> str | None:
    return _FLAGS.get(value.casefold())


_HINTS: Mapping[Callable[[str], str | None], str] = {
    _count: "give a number of 0 or more",
    _positive: "give a number above 0",
    _size: "give a size such as '256MB'",
    _codec: f"give {', '.join(CODECS[:-1])} or {CODECS[-1]}",
    parquet_version: "give 1 or 2",
    _fraction: "give a number from 0 to 1",
    _interval: "give an interval such as '7 days'",
    _flag: "give true or false",
}

_RULES: Mapping[str, Callable[[str], str | None]] = {
    "data_inlining_row_limit": _count,
    "target_file_size": _size,
    "parquet_compression": _codec,
    "parquet_compression_level": _count,
    "parquet_version": parquet_version,
    "parquet_row_group_size": _positive,
    "parquet_row_group_size_bytes": _size,
    "hive_file_pattern": _flag,
    "require_commit_message": _flag,
    "rewrite_delete_threshold": _fraction,
    "delete_older_than": _interval,
    "expire_older_than": _interval,
    "auto_compact": _flag,
    "per_thread_output": _flag,
    "sort_on_insert": _flag,
    "write_deletion_vectors": _flag,
}
