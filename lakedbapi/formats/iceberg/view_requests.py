"""Requests about views that pyiceberg's client of REST catalogs does not make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import requests
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import Capability, Endpoints, IdentifierKind, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchViewError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.view.metadata import ViewVersion

from lakedbapi.errors import CommitUnknownError, ConflictError
from lakedbapi.formats.iceberg.failures import reported

Identifier = tuple[str, ...]

_RENAME = "views/rename"
_CREATE = f"POST /v1/{{prefix}}/{Endpoints.create_view}"


def has_views(client: Catalog) -> bool:
    """Whether views can be made in the catalog. Servers tell what they have (old ones: `view-endpoints-supported`)."""
    if not isinstance(client, RestCatalog):
        return False
    known = client._supported_endpoints
    return Capability.V1_REGISTER_VIEW in known or _CREATE in map(str, known)


class ViewClient:
    """`client`: of a catalog with views. ConflictError for what others made or dropped meanwhile."""

    def __init__(self, name: str, client: RestCatalog) -> None:
        self._name = name
        self._client = client

    def create(self, identifier: Identifier, schema: Schema, version: ViewVersion, properties: dict[str, str]) -> None:
        with self._changing("creating", identifier):
            self._client.create_view(identifier, schema, version, properties=properties)

    def change(self, identifier: Identifier, uuid: str, updates: Sequence[dict[str, Any]]) -> list[int]:
        """One commit with all `updates`, to the view with this id. Returns the versions that were current, the newest
        last."""
        parts = self._client._split_identifier_for_path(identifier, IdentifierKind.VIEW)
        body = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": list(updates)}
        with self._changing("changing", identifier):
            answer = self._post(self._client.url(Endpoints.load_view, **parts), body).json()
            return [int(entry["version-id"]) for entry in answer["metadata"]["version-log"]]

    def rename(self, old: Identifier, new: Identifier) -> None:
        source, destination = map(self._client._split_identifier_for_json, (old, new))
        with self._changing("renaming", old):
            self._post(self._client.url(_RENAME), {"source": source, "destination": destination})

    def drop(self, identifier: Identifier) -> None:
        with self._changing("dropping", identifier):
            self._client.drop_view(identifier)

    def _post(self, url: str, body: dict[str, Any]) -> requests.Response:
        response = self._client._session.post(url, json=body)
        try:
            response.raise_for_status()
        except requests.HTTPError as error:
            _handle_non_200_response(error, {404: NoSuchViewError, 409: CommitFailedException})
        return response

    @contextmanager
    def _changing(self, doing: str, identifier: Identifier) -> Iterator[None]:
        name = ".".join(identifier)
        with reported(f"catalog {self._name}: {doing} view {name}"):
            try:
                yield
            except (ViewAlreadyExistsError, TableAlreadyExistsError, CommitFailedException) as error:
                raise conflict(name, f"another one made or changed it, or took its name: {error}") from error
            except (NoSuchViewError, NoSuchNamespaceError) as error:
                raise conflict(name, "another one dropped it or its schema") from error
            except (ServerError, ServiceUnavailableError, requests.ConnectionError, requests.Timeout) as error:
                raise CommitUnknownError(
                    f"{doing} view {name}: the catalog did not answer, so that nobody can tell whether it was done: "
                    f"{error}. SHOW VIEWS and SHOW CREATE VIEW tell what is there"
                ) from error


def conflict(name: str, what: str) -> ConflictError:
    return ConflictError(f"view {name}: since this transaction began, {what}; roll back and retry")
