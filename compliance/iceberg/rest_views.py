"""The views of a REST catalog, by the Iceberg view specification and the requests of its OpenAPI definition."""

from __future__ import annotations

import copy
import time
import uuid
from typing import Any

from pyiceberg.exceptions import BadRequestError, CommitFailedException, NoSuchViewError, ViewAlreadyExistsError

Identifier = tuple[str, ...]
Json = dict[str, Any]


class Views:
    """Their metadata, by identifier."""

    def __init__(self) -> None:
        self._metadata: dict[Identifier, Json] = {}

    def names(self, namespace: Identifier) -> list[Identifier]:
        return sorted(identifier for identifier in self._metadata if identifier[:-1] == namespace)

    def answer(self, identifier: Identifier) -> Json:
        metadata = self._load(identifier)
        number = len(metadata["version-log"])
        return {"metadata-location": f"{metadata['location']}/v{number}.json", "metadata": metadata, "config": {}}

    def create(self, namespace: Identifier, asked: Json) -> Json:
        identifier = (*namespace, asked["name"])
        if identifier in self._metadata:
            raise ViewAlreadyExistsError(f"view {'.'.join(identifier)} exists")
        metadata = {
            "view-uuid": str(uuid.uuid4()),
            "format-version": 1,
            "location": asked.get("location") or f"memory://views/{'/'.join(identifier)}",
            "schemas": [],
            "versions": [],
            "version-log": [],
            "properties": dict(asked.get("properties") or {}),
        }
        _add_schema(metadata, asked["schema"])
        _add_version(metadata, asked["view-version"])
        _set_current(metadata, asked["view-version"]["version-id"])
        self._metadata[identifier] = metadata
        return self.answer(identifier)

    def commit(self, identifier: Identifier, asked: Json) -> Json:
        """All updates or none."""
        metadata = copy.deepcopy(self._load(identifier))
        for requirement in asked.get("requirements", []):
            if requirement["type"] != "assert-view-uuid":
                raise BadRequestError(f"unknown requirement {requirement['type']}")
            if requirement["uuid"] != metadata["view-uuid"]:
                raise CommitFailedException(f"view {'.'.join(identifier)} has another uuid")
        schema_ids: list[int] = []
        version_ids: list[int] = []
        for update in asked["updates"]:
            match update["action"]:
                case "add-schema":
                    schema_ids.append(_add_schema(metadata, update["schema"]))
                case "add-view-version":
                    version = dict(update["view-version"])
                    if version["schema-id"] == -1:
                        version["schema-id"] = _last(schema_ids)
                    version_ids.append(_add_version(metadata, version))
                case "set-current-view-version":
                    number = update["view-version-id"]
                    _set_current(metadata, _last(version_ids) if number == -1 else number)
                case "set-properties":
                    metadata["properties"] |= update["updates"]
                case "remove-properties":
                    for name in update["removals"]:
                        metadata["properties"].pop(name, None)
                case "set-location":
                    metadata["location"] = update["location"]
                case action:
                    raise BadRequestError(f"unknown update {action} of a view")
        self._metadata[identifier] = metadata
        return self.answer(identifier)

    def drop(self, identifier: Identifier) -> None:
        self._load(identifier)
        del self._metadata[identifier]

    def rename(self, old: Identifier, new: Identifier) -> None:
        metadata = self._load(old)
        if new in self._metadata:
            raise ViewAlreadyExistsError(f"view {'.'.join(new)} exists")
        self._metadata[new] = metadata
        del self._metadata[old]

    def _load(self, identifier: Identifier) -> Json:
        found = self._metadata.get(identifier)
        if found is None:
            raise NoSuchViewError(f"there is no view {'.'.join(identifier)}")
        return found


def _last(added: list[int]) -> int:
    if not added:
        raise BadRequestError("-1 stands for what was added last, and nothing was")
    return added[-1]


def _add_schema(metadata: Json, schema: Json) -> int:
    """The id of the schema, which is that of an equal one if there is any."""
    for known in metadata["schemas"]:
        if known["fields"] == schema["fields"]:
            return int(known["schema-id"])
    number = max((known["schema-id"] for known in metadata["schemas"]), default=-1) + 1
    metadata["schemas"].append({**schema, "schema-id": number})
    return number


def _add_version(metadata: Json, version: Json) -> int:
    """Its id, which is another one where that is taken, as in the reference implementation."""
    taken = [known["version-id"] for known in metadata["versions"]]
    if version["version-id"] in taken:
        version = {**version, "version-id": max(taken) + 1}
    if version["schema-id"] not in [known["schema-id"] for known in metadata["schemas"]]:
        raise BadRequestError(f"there is no schema {version['schema-id']}")
    dialects = [text["dialect"].casefold() for text in version["representations"]]
    if not dialects or len(set(dialects)) < len(dialects):
        raise BadRequestError("a version has one text in each of its dialects")
    metadata["versions"].append(version)
    return int(version["version-id"])


def _set_current(metadata: Json, number: int) -> None:
    if number not in [known["version-id"] for known in metadata["versions"]]:
        raise BadRequestError(f"there is no version {number}")
    metadata["current-version-id"] = number
    metadata["version-log"].append({"version-id": number, "timestamp-ms": time.time_ns() // 1_000_000})
