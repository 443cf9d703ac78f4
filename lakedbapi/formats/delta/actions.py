"""The actions of the log that a table has one of: protocol, metadata; and those that are few.

Each is read from and written to the JSON of the log without loss: keys that are not known here are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakedbapi.errors import DataError


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
            _texts(rest.pop("readerFeatures", None)),
            _texts(rest.pop("writerFeatures", None)),
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
        rest = dict(action)
        format = rest.pop("format", None) or {}
        return cls(
            id=rest.pop("id", None) or "",
            schema_string=rest.pop("schemaString", None) or "",
            partition_columns=_texts(rest.pop("partitionColumns", None)) or (),
            configuration=dict(rest.pop("configuration", None) or {}),
            name=rest.pop("name", None),
            description=rest.pop("description", None),
            created_time=rest.pop("createdTime", None),
            format_provider=format.get("provider") or "parquet",
            format_options=dict(format.get("options") or {}),
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


def _texts(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _without_nulls(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in action.items() if value is not None}
