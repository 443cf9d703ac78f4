"""An Iceberg REST catalog over a catalog of pyiceberg: what clients call to read, create and commit tables and views.

Follows the OpenAPI definition of the Iceberg REST catalog for the endpoints that it lists in its configuration. Clients
log in with client credentials (`user`, `password`) and get the storage's properties with each table.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, StagedTable, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from compliance.iceberg.rest_views import Views

USER, PASSWORD = "analyst", "s3cret"
_TOKEN = "token-of-the-analyst"
_ENDPOINTS = [
    f"{method} /v1/{{prefix}}/{path}"
    for method, path in (
        ("GET", "namespaces"),
        ("POST", "namespaces"),
        ("GET", "namespaces/{namespace}"),
        ("DELETE", "namespaces/{namespace}"),
        ("GET", "namespaces/{namespace}/tables"),
        ("POST", "namespaces/{namespace}/tables"),
        ("GET", "namespaces/{namespace}/tables/{table}"),
        ("POST", "namespaces/{namespace}/tables/{table}"),
        ("DELETE", "namespaces/{namespace}/tables/{table}"),
    )
]
_VIEW_ENDPOINTS = [
    f"{method} /v1/{{prefix}}/{path}"
    for method, path in (
        ("GET", "namespaces/{namespace}/views"),
        ("POST", "namespaces/{namespace}/views"),
        ("GET", "namespaces/{namespace}/views/{view}"),
        ("HEAD", "namespaces/{namespace}/views/{view}"),
        ("POST", "namespaces/{namespace}/views/{view}"),
        ("DELETE", "namespaces/{namespace}/views/{view}"),
        ("POST", "views/rename"),
    )
]
_STATUS = {
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    NamespaceAlreadyExistsError: 409,
    NamespaceNotEmptyError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
    NoSuchViewError: 404,
    ViewAlreadyExistsError: 409,
    BadRequestError: 400,
}

Answer = tuple[int, "dict[str, Any] | None"]


@dataclass
class RestCatalog:
    """`config` goes to clients with every table. `views`: None for a server that has none."""

    catalog: Catalog
    config: Mapping[str, str] = field(default_factory=dict)
    views: Views | None = field(default_factory=Views)
    requests: list[str] = field(default_factory=list)
    """`METHOD path` of all that came."""

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: bytes) -> Answer:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        self.requests.append(f"{method} {path}")
        match method, parts[1:]:
            case "POST", ["oauth", "tokens"]:
                return self._token(parse_qs(body.decode()))
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}, "endpoints": self._endpoints()}
            case "GET", ["namespaces"]:
                parent = tuple(query["parent"][0].split("\x1f")) if "parent" in query else ()
                return 200, {"namespaces": [list(n) for n in self.catalog.list_namespaces(parent)]}
            case "POST", ["namespaces"]:
                asked = json.loads(body)
                self.catalog.create_namespace(tuple(asked["namespace"]), asked.get("properties", {}))
                return 200, asked
            case "GET", ["namespaces", namespace]:
                found = self.catalog.load_namespace_properties(_namespace(namespace))
                return 200, {"namespace": list(_namespace(namespace)), "properties": found}
            case "GET", ["namespaces", namespace, "tables"]:
                return 200, _identifiers(self.catalog.list_tables(_namespace(namespace)))
            case "POST", ["namespaces", namespace, "tables"]:
                return 200, self._create(_namespace(namespace), CreateTableRequest.model_validate_json(body))
            case "GET", ["namespaces", namespace, "tables", name]:
                return 200, self._table(self.catalog.load_table((*_namespace(namespace), name)))
            case "POST", ["namespaces", namespace, "tables", name]:
                return 200, self._commit((*_namespace(namespace), name), json.loads(body))
            case "DELETE", ["namespaces", namespace, "tables", name]:
                self.catalog.drop_table((*_namespace(namespace), name))
                return 204, None
            case "DELETE", ["namespaces", namespace]:
                self._drop_namespace(_namespace(namespace))
                return 204, None
        if self.views is not None:
            return self._answer_views(self.views, method, parts[1:], body)
        return self._unknown(method, path)

    def _answer_views(self, views: Views, method: str, parts: list[str], body: bytes) -> Answer:
        match method, parts:
            case "GET", ["namespaces", namespace, "views"]:
                self.catalog.load_namespace_properties(_namespace(namespace))
                return 200, _identifiers(views.names(_namespace(namespace)))
            case "POST", ["namespaces", namespace, "views"]:
                asked = json.loads(body)
                self.catalog.load_namespace_properties(_namespace(namespace))
                self._check_no_table((*_namespace(namespace), asked["name"]))
                return 200, views.create(_namespace(namespace), asked)
            case "GET", ["namespaces", namespace, "views", name]:
                return 200, views.answer((*_namespace(namespace), name))
            case "HEAD", ["namespaces", namespace, "views", name]:
                views.answer((*_namespace(namespace), name))
                return 204, None
            case "POST", ["namespaces", namespace, "views", name]:
                return 200, views.commit((*_namespace(namespace), name), json.loads(body))
            case "DELETE", ["namespaces", namespace, "views", name]:
                views.drop((*_namespace(namespace), name))
                return 204, None
            case "POST", ["views", "rename"]:
                old, new = (_identifier(json.loads(body)[end]) for end in ("source", "destination"))
                self.catalog.load_namespace_properties(new[:-1])
                self._check_no_table(new)
                views.rename(old, new)
                return 204, None
        return self._unknown(method, "/".join(parts))

    def _unknown(self, method: str, path: str) -> Answer:
        return 404, _error(404, "NotFoundException", f"there is no {method} {path}")

    def _endpoints(self) -> list[str]:
        return _ENDPOINTS + (_VIEW_ENDPOINTS if self.views is not None else [])

    def _drop_namespace(self, namespace: tuple[str, ...]) -> None:
        if self.views is not None and self.views.names(namespace):
            raise NamespaceNotEmptyError(f"namespace {'.'.join(namespace)} has views")
        self.catalog.drop_namespace(namespace)

    def _check_no_table(self, identifier: tuple[str, ...]) -> None:
        if self.catalog.table_exists(identifier):
            raise TableAlreadyExistsError(f"{'.'.join(identifier)} is a table")

    def _token(self, form: Mapping[str, list[str]]) -> Answer:
        if (form.get("client_id"), form.get("client_secret")) != ([USER], [PASSWORD]):
            return 401, {"error": "invalid_client", "error_description": "Credentials given were not valid"}
        return 200, {"access_token": _TOKEN, "token_type": "bearer", "expires_in": 3600}

    def _table(self, table: Table) -> dict[str, Any]:
        metadata = json.loads(table.metadata.model_dump_json())
        return {"metadata-location": table.metadata_location, "metadata": metadata, "config": dict(self.config)}

    def _create(self, namespace: tuple[str, ...], asked: CreateTableRequest) -> dict[str, Any]:
        if self.views is not None and (*namespace, asked.name) in self.views.names(namespace):
            raise TableAlreadyExistsError(f"{asked.name} is a view")
        created = self.catalog.create_table(
            (*namespace, asked.name),
            asked.table_schema,
            asked.location,
            asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            asked.write_order or UNSORTED_SORT_ORDER,
            asked.properties,
        )
        return self._table(created)

    def _commit(self, identifier: tuple[str, ...], body: dict[str, Any]) -> dict[str, Any]:
        named = {"identifier": {"namespace": list(identifier[:-1]), "name": identifier[-1]}}
        asked = CommitTableRequest.model_validate({**named, **body})
        nothing: Any = None  # The table may be a new one, and a commit needs no more of it than its name.
        table = StagedTable(identifier, nothing, "", nothing, self.catalog)
        done = self.catalog.commit_table(table, asked.requirements, asked.updates)
        return {"metadata-location": done.metadata_location, "metadata": json.loads(done.metadata.model_dump_json())}


def _identifier(named: dict[str, Any]) -> tuple[str, ...]:
    return (*named["namespace"], named["name"])


def _namespace(text: str) -> tuple[str, ...]:
    return tuple(text.split("\x1f"))


def _identifiers(found: list[tuple[str, ...]]) -> dict[str, Any]:
    return {"identifiers": [{"namespace": list(i[:-1]), "name": i[-1]} for i in found]}


def _error(code: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}


class _Handler(BaseHTTPRequestHandler):
    served: ClassVar[RestCatalog]

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_open = url.path.endswith(("/config", "/oauth/tokens"))
        if not is_open and self.headers.get("Authorization") != f"Bearer {_TOKEN}":
            return self._send(401, _error(401, "NotAuthorizedException", "log in first"))
        try:
            return self._send(*self.served.answer(self.command, url.path, parse_qs(url.query), body))
        except tuple(_STATUS) as error:
            code = _STATUS[type(error)]
            return self._send(code, _error(code, type(error).__name__, str(error)))

    do_GET: Callable[..., None] = _serve  # noqa: N815
    do_POST: Callable[..., None] = _serve  # noqa: N815
    do_HEAD: Callable[..., None] = _serve  # noqa: N815
    do_DELETE: Callable[..., None] = _serve  # noqa: N815

    def _send(self, status: int, content: dict[str, Any] | None) -> None:
        data = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(catalog: RestCatalog) -> Iterator[int]:
    """The port that the catalog is served at on 127.0.0.1."""
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": catalog}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
