"""The actions of the log that a table has one of: protocol, metadata; and those that are few.

Each is read from and written to the JSON of the log without loss: keys that are not known here are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lakedbapi.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class Protocol:
    """What a reader and a writer must be able to do.

    The feature lists are None where the versions do not have them (reader below 3, writer below 7).
    """

    min_reader: int
    min_writer: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> Protocol:
        rest = dict(action)
        try:
            reader, writer = int(rest.pop("minReaderVersion")), int(rest.pop("minWriterVersion"))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the table's protocol action is damaged: {action!r}") from error
        return cls(
            reader,
            writer,
            _texts("readerFeatures", rest.pop("readerFeatures", None)),
            _texts("writerFeatures", rest.pop("writerFeatures", None)),
            _without_nulls(rest),
        )

    def to_json(self) -> dict[str, Any]:
        action: dict[str, Any] = {"minReaderVersion": self.min_reader, "minWriterVersion": self.min_writer}
        if self.reader_features is not None:
            action["readerFeatures"] = list(self.reader_features)
        if self.writer_features is not None:
            action["writerFeatures"] = list(self.writer_features)
        return {**action, **self.extra}


@dataclass(frozen=True)
class Metadata:
    """Schema, partitioning and properties of a table. `created_time` is in milliseconds since 1970."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> Metadata:
        """DataError for values of other types."""
        rest = dict(action)
        format = rest.pop("format", None) or {}
        return cls(
            id=_typed("id", rest.pop("id", None), str) or "",
            schema_string=_typed("schemaString", rest.pop("schemaString", None), str) or "",
            partition_columns=_texts("partitionColumns", rest.pop("partitionColumns", None)) or (),
            configuration=_text_map("configuration", rest.pop("configuration", None)),
            name=_typed("name", rest.pop("name", None), str),
            description=_typed("description", rest.pop("description", None), str),
            created_time=_whole_number("createdTime", rest.pop("createdTime", None)),
            format_provider=_typed("format.provider", format.get("provider"), str) or "parquet",
            format_options=_text_map("format.options", format.get("options")),
            extra=_without_nulls(rest),
        )

    def to_json(self) -> dict[str, Any]:
        action: dict[str, Any] = {"id": self.id}
        if self.name is not None:
            action["name"] = self.name
        if self.description is not None:
            action["description"] = self.description
        action["format"] = {"provider": self.format_provider, "options": dict(self.format_options)}
        action["schemaString"] = self.schema_string
        action["partitionColumns"] = list(self.partition_columns)
        action["configuration"] = dict(self.configuration)
        if self.created_time is not None:
            action["createdTime"] = self.created_time
        return {**action, **self.extra}


@dataclass(frozen=True)
class Txn:
    """How far an application has got: `version` is its own number; `last_updated` in milliseconds since 1970."""

    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> Txn:
        return cls(action["appId"], action["version"], action.get("lastUpdated"))

    def to_json(self) -> dict[str, Any]:
        action: dict[str, Any] = {"appId": self.app_id, "version": self.version}
        return action if self.last_updated is None else {**action, "lastUpdated": self.last_updated}


@dataclass(frozen=True)
class DomainMetadata:
    """Configuration that belongs to one feature or application; `removed` takes it away."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> DomainMetadata:
        return cls(action["domain"], action.get("configuration") or "", bool(action.get("removed")))

    def to_json(self) -> dict[str, Any]:
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


def _typed(name: str, value: Any, type: type[T]) -> T | None:
    if value is None or isinstance(value, type):
        return value
    raise DataError(f"the table's log is damaged: {name} is {value!r}")


def _whole_number(name: str, value: Any) -> int | None:
    found = _typed(name, value, int)
    if found is not None and abs(found) >= 1 << 63:
        raise DataError(f"the table's log is damaged: {name} is {value!r}")
    return found


def _texts(name: str, values: Any) -> tuple[str, ...] | None:
    found = _typed(name, values, list)
    return None if found is None else tuple(_typed(name, value, str) or "" for value in found)


def _text_map(name: str, values: Any) -> dict[str, str]:
    """Without values that are NULL."""
    found = _typed(name, values, dict) or {}
    return {key: text for key, value in found.items() if (text := _typed(f"{name} {key!r}", value, str)) is not None}


def _without_nulls(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in action.items() if value is not None}
