"""Opening Iceberg catalogs, and tables without a catalog."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from pyiceberg.catalog import load_catalog

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Format
from lakedbapi.formats.database_files import is_there, prepare_new
from lakedbapi.formats.iceberg.catalog import IcebergCatalog
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.sources import CatalogSource, DirectorySource, FileSource, Source
from lakedbapi.formats.iceberg.sql_catalog import SqlCatalog
from lakedbapi.storage.filesystem import Storage

_SQLITE = "sqlite:///"
_STORAGE = "storage_options."
_FILE_SYSTEMS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory", "file")
_STORAGE_NAMES: Mapping[str, Sequence[str]] = {
    "key": ["s3.access-key-id"],
    "secret": ["s3.secret-access-key"],
    "token": ["s3.session-token", "gcs.oauth2.token"],
    "endpoint_url": ["s3.endpoint", "gcs.service.host"],
    "client_kwargs.endpoint_url": ["s3.endpoint"],
    "client_kwargs.region_name": ["s3.region"],
    "anon": ["s3.anonymous", "adls.anon"],
    "project": ["gcs.project-id"],
    "access": ["gcs.access"],
    "requester_pays": ["gcs.requester-pays"],
    "connection_string": ["adls.connection-string"],
    "credential": ["adls.credential"],
    "account_name": ["adls.account-name"],
    "account_key": ["adls.account-key"],
    "account_host": ["adls.account-host"],
    "sas_token": ["adls.sas-token"],
    "tenant_id": ["adls.tenant-id"],
    "client_id": ["adls.client-id"],
    "client_secret": ["adls.client-secret"],
}
"""Options of s3fs, gcsfs and adlfs as pyiceberg calls them. Others go on as they are, so that its own names can be
given, too."""


class IcebergFormat(Format):
    name = "iceberg"

    def open(self, location: str, options: Mapping[str, str], *, read_only: bool, create: bool) -> IcebergCatalog:
        non_atomic = options.get("non_atomic", "false").casefold() == "true"
        return IcebergCatalog(_source(location, options, create=create), non_atomic=non_atomic)


def _source(location: str, options: Mapping[str, str], *, create: bool) -> Source:
    storage_options = {name[len(_STORAGE) :]: value for name, value in options.items() if name.startswith(_STORAGE)}
    kind = urlsplit(location).scheme if "://" in location else ""
    if not kind or kind in _FILE_SYSTEMS:
        return _files(location, storage_options)
    properties = _properties(kind, location)
    if kind == "sqlite":
        file = Path(properties["uri"].removeprefix(_SQLITE))
        if not is_there(file):
            prepare_new(file, "Iceberg", create=create)
    properties["py-io-impl"] = "pyiceberg.io.fsspec.FsspecFileIO"
    properties |= _storage_properties(storage_options)
    if "warehouse" in options:
        properties["warehouse"] = _warehouse(options["warehouse"], properties["type"])
    name = options.get("catalog", "default")
    with reported(f"opening the Iceberg catalog {kind}"):
        client = SqlCatalog(name, **properties) if properties["type"] == "sql" else load_catalog(name, **properties)
        return CatalogSource(_shown(location), client)


def _files(location: str, storage_options: Mapping[str, str]) -> Source:
    if location.endswith((".metadata.json", ".metadata.json.gz", ".json")):
        directory = location.rpartition("/")[0]
        return FileSource(Storage.of(directory, storage_options), location)
    storage = Storage.of(location, storage_options)
    if storage.is_local and not storage.is_directory(storage.root):
        raise ProgrammingError(f"{storage.root}: no such directory, so there are no Iceberg tables")
    return DirectorySource(storage)


def _storage_properties(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for option, value in options.items() for name in _STORAGE_NAMES.get(option, [option])}


def _warehouse(text: str, type: str) -> str:
    """A local one is absolute, since tables keep it in the places of their files; for others it may be a mere name."""
    return _absolute(text) if type == "sql" and "://" not in text and not text.startswith("file:") else text


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _properties(kind: str, location: str) -> dict[str, str]:
    """What pyiceberg's `load_catalog` is to be given."""
    url = urlsplit(location)
    if kind in ("rest", "http", "https"):
        scheme = "http" if kind == "rest" else kind
        given, _, host = url.netloc.rpartition("@")
        user, _, secret = (unquote(part) for part in given.partition(":"))
        uri = urlunsplit((scheme, host, url.path.rstrip("/"), "", ""))
        properties = {"type": "rest", "uri": uri}
        if not secret and not user:
            return properties
        login = {"credential": f"{user}:{secret}"} if user else {"token": secret}
        return {**properties, **login, "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
    if kind == "sqlite":
        return {"type": "sql", "uri": f"{_SQLITE}{_absolute(url.path.removeprefix('/'))}"}
    if kind in ("postgresql", "postgres", "mysql", "mariadb"):
        driver = "postgresql+psycopg" if kind.startswith("postgres") else "mysql+pymysql"
        return {"type": "sql", "uri": urlunsplit((driver, url.netloc, url.path, url.query, ""))}
    if kind == "hive":
        return {"type": "hive", "uri": f"thrift://{url.netloc}"}
    if kind == "glue":
        return {"type": "glue", **({"glue.id": url.netloc} if url.netloc else {})}
    raise NotSupportedError(
        f"Iceberg catalogs of kind {kind!r} are not supported: use rest, sqlite, postgresql, mysql, hive or glue"
    )


def _shown(location: str) -> str:
    url = urlsplit(location)
    return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))
