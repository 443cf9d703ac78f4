"""Where tables are found: in a catalog service, or in a directory."""

from __future__ import annotations

import gzip
import json
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from fsspec import AbstractFileSystem
from pyiceberg.catalog import Catalog as Client
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
)
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.table import StagedTable
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.view.metadata import ViewMetadata

from lakedbapi.errors import ConflictError, DataError, NotSupportedError, OperationalError
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.older_metadata import remove_older_metadata
from lakedbapi.formats.iceberg.paths import Paths, moved
from lakedbapi.formats.iceberg.sql_catalog import SqlCatalog
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.tree import MAIN, Tree
from lakedbapi.storage.filesystem import Storage

Namespace = tuple[str, ...]
VERSIONS = (1, 2, 3)


@dataclass(frozen=True)
class LoadedTable:
    """`metadata_location` names this state of the table: another state lies elsewhere."""

    metadata: TableMetadata
    metadata_location: str
    paths: Paths
    storage: Storage


class Source(ABC):
    """Tables by namespace and name. `name` is for messages and carries no secret."""

    name: str
    storage: Storage

    @abstractmethod
    def namespaces(self) -> Sequence[Namespace]: ...

    def has_namespace(self, namespace: Namespace) -> bool:
        """Whether it is surely there; where that cannot be told alone, `namespaces` tells."""
        return namespace in self.namespaces()

    @abstractmethod
    def tables(self, namespace: Namespace) -> Sequence[str]: ...

    @abstractmethod
    def load(self, namespace: Namespace, table: str) -> LoadedTable | None:
        """The table as it is now; None when there is none any more."""

    def metadata_location(self, namespace: Namespace, table: str) -> str | None:
        """Where the metadata of a table is that cannot be read; None where nobody can tell."""
        return None

    def views(self, namespace: Namespace) -> Sequence[str]:
        return ()

    def load_view(self, namespace: Namespace, view: str) -> ViewMetadata | None:
        return None

    def roots(self) -> Sequence[str]:
        """Directories that are known to hold files of the tables, each ending in `/`."""
        return ()

    def close(self) -> None:
        """Release connections."""


class CatalogSource(Source):
    """A catalog of pyiceberg. Files are read through the filesystem that its properties describe."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self._storages: dict[str, Storage] = {}
        self._has_views = True
        self._configs: dict[tuple[str, ...], dict[str, str]] = {}
        """What a server said beside the metadata of each table, such as a token for it."""

    @property
    def checks_here(self) -> bool:
        """Whether requirements of commits are checked here, on what the catalog then swaps, and by no server."""
        return isinstance(self.client, MetastoreCatalog)

    @cached_property
    def storage(self) -> Storage:  # type: ignore[override]
        warehouse = self.client.properties.get("warehouse", "")
        if "/" not in warehouse:
            warehouse = next((loaded.metadata.location for loaded in self._all()), "/")
        return self._storage_of(warehouse, self.client.properties)

    def _all(self) -> Sequence[LoadedTable]:
        """The first table that there is."""
        for namespace in self.namespaces():
            for table in self.tables(namespace):
                loaded = self.load(namespace, table)
                if loaded is not None:
                    return [loaded]
        return []

    def storage_at(self, location: str) -> Storage:
        """Of a new table."""
        return self._storage_of(location or self.storage.root, self.client.properties)

    def new_location(self, namespace: Namespace, table: str) -> str:
        """Where a new table goes, without a slash at the end."""
        with reported(f"catalog {self.name}: finding a place for table {'.'.join((*namespace, table))}"):
            if isinstance(self.client, MetastoreCatalog) and self.client.namespace_exists(namespace):
                with suppress(ValueError):  # Neither the namespace nor the catalog says.
                    return self.client._resolve_table_location(None, ".".join(namespace), table)
        warehouse = self.client.properties.get("warehouse", "")
        if "/" not in warehouse:
            raise NotSupportedError(
                f"catalog {self.name} does not say where new tables go: connect with the option warehouse=…, a "
                f"directory or URL, or give the table a place: CREATE TABLE {table} (…) WITH ('location' = 's3://…')"
            )
        return "/".join((warehouse.rstrip("/"), *namespace, table))

    def commit(
        self,
        identifier: tuple[str, ...],
        requirements: tuple[Any, ...],
        updates: tuple[Any, ...],
        *,
        before: TableVersion | None,
    ) -> TableMetadata:
        """Change the table from what it was `before`, None where it is new. Raises what the client does."""
        config = {} if before is None else self._configs.get(identifier, {})
        nothing: Any = None  # A commit needs no more of a table than its name.
        done = self.client.commit_table(
            StagedTable(identifier, nothing, "", nothing, self.client, config), requirements, updates
        )
        if before is not None:
            remove_older_metadata(before, done.metadata)
        return done.metadata

    def ensure_namespace(self, namespace: Namespace) -> None:
        with reported(f"catalog {self.name}: looking for namespace {'.'.join(namespace)}"):
            if not self.client.namespace_exists(namespace):
                self.client.create_namespace_if_not_exists(namespace)

    def create_namespace(self, namespace: Namespace, comment: str | None) -> None:
        with reported(f"catalog {self.name}: creating namespace {'.'.join(namespace)}"):
            try:
                self.client.create_namespace(namespace, {} if comment is None else {"comment": comment})
            except NamespaceAlreadyExistsError as error:
                raise ConflictError(
                    f"schema {'.'.join(namespace)} was created by another transaction; roll back and retry"
                ) from error

    def drop_namespace(self, namespace: Namespace) -> None:
        with reported(f"catalog {self.name}: dropping namespace {'.'.join(namespace)}"):
            try:
                self.client.drop_namespace(namespace)
            except NoSuchNamespaceError:
                return
            except NamespaceNotEmptyError as error:
                raise ConflictError(
                    f"schema {'.'.join(namespace)} is not empty: another transaction made a table in it; roll back and "
                    "retry"
                ) from error

    def drop_table(self, identifier: tuple[str, ...]) -> None:
        """The catalog forgets it; its files stay."""
        name = ".".join(identifier)
        with reported(f"catalog {self.name}: dropping table {name}"):
            try:
                self.client.drop_table(identifier)
            except NoSuchTableError as error:
                raise ConflictError(
                    f"table {name} was dropped by another transaction since this one began; roll back and retry"
                ) from error

    def rename_table(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        with reported(f"catalog {self.name}: renaming table {'.'.join(old)}"):
            self.client.rename_table(old, new)

    def _storage_of(self, location: str, properties: Mapping[str, str]) -> Storage:
        root = Paths().full(location)
        scheme, separator, _ = root.partition("://")
        if not separator:
            return Storage.of(root)
        if scheme not in self._storages:
            with reported(f"opening the storage {scheme}://"):
                account = urlsplit(root).hostname if "@" in root else None  # abfss://container@account…
                filesystem: AbstractFileSystem = FsspecFileIO(dict(properties)).get_fs(scheme, account)
            self._storages[scheme] = Storage(root.rstrip("/") + "/", filesystem)
        return self._storages[scheme]

    def namespaces(self) -> Sequence[Namespace]:
        with reported(f"catalog {self.name}: listing namespaces"):
            found: list[Namespace] = []
            waiting: list[Namespace] = list(self.client.list_namespaces())
            while waiting:
                namespace = waiting.pop()
                found.append(namespace)
                waiting += [child for child in self._children(namespace) if len(child) > len(namespace)]
            return sorted(found)

    def has_namespace(self, namespace: Namespace) -> bool:
        with suppress(Exception):
            return bool(self.client.namespace_exists(namespace))
        return False

    def _children(self, namespace: Namespace) -> Sequence[Namespace]:
        try:
            return self.client.list_namespaces(namespace)
        except (NoSuchNamespaceError, NotImplementedError):
            return ()

    def tables(self, namespace: Namespace) -> Sequence[str]:
        with reported(f"catalog {self.name}: listing tables of {'.'.join(namespace)}"):
            try:
                return [identifier[-1] for identifier in self.client.list_tables(namespace)]
            except NoSuchNamespaceError:
                return ()

    def load(self, namespace: Namespace, table: str) -> LoadedTable | None:
        with reported(f"catalog {self.name}: loading table {'.'.join((*namespace, table))}"):
            try:
                loaded = self.client.load_table((*namespace, table))
            except NoSuchTableError:
                return None
        identifier = (*namespace, table)
        self._configs[identifier] = dict(loaded.config)
        storage = self._storage_of(loaded.metadata.location, loaded.io.properties)
        return LoadedTable(loaded.metadata, loaded.metadata_location, Paths(), storage)

    def metadata_location(self, namespace: Namespace, table: str) -> str | None:
        if not isinstance(self.client, SqlCatalog):
            return None
        with reported(f"catalog {self.name}: looking for table {'.'.join((*namespace, table))}"):
            return self.client.metadata_location((*namespace, table))

    def views(self, namespace: Namespace) -> Sequence[str]:
        if not self._has_views:
            return ()
        try:
            return [identifier[-1] for identifier in self.client.list_views(namespace)]
        except NotImplementedError:
            self._has_views = False  # Nor will it have any the next time.
            return ()
        except Exception:  # Servers without views answer in many ways; without their list there are none.
            return ()

    def load_view(self, namespace: Namespace, view: str) -> ViewMetadata | None:
        name = ".".join((*namespace, view))
        with reported(f"catalog {self.name}: loading view {name}"):
            try:
                return self.client.load_view((*namespace, view)).metadata
            except NoSuchViewError:
                return None

    def roots(self) -> Sequence[str]:
        warehouse = self.client.properties.get("warehouse", "")
        return [Paths().full(warehouse).rstrip("/") + "/"] if "/" in warehouse else []

    def close(self) -> None:
        self.client.close()


_METADATA_FOLDER = "metadata"
_METADATA = re.compile(r"(?:v(\d+)|(\d+)-.+)(?:\.gz)?\.metadata\.json(?:\.gz)?")


class DirectorySource(Source):
    """Tables that lie in a directory, with no catalog. Read only.

    The newest metadata of a table is that with the highest number, as in the layout of Hadoop.
    """

    def __init__(self, storage: Storage) -> None:
        self.name = storage.root
        self.storage = storage

    def namespaces(self) -> Sequence[Namespace]:
        return [(name,) for name in self._tree().schemas]

    def tables(self, namespace: Namespace) -> Sequence[str]:
        return list(self._tree().tables(*namespace))

    def load(self, namespace: Namespace, table: str) -> LoadedTable | None:
        directory = self._tree().tables(*namespace).get(table)
        if directory is None:
            return None
        names = [entry.name for entry in self.storage.entries(f"{directory}{_METADATA_FOLDER}/")]
        numbered = [(int(found[1] or found[2]), name) for name in names if (found := _METADATA.fullmatch(name))]
        if not numbered:
            raise OperationalError(f"{directory}: it has no metadata file, so it is no Iceberg table")
        return load_file(self.storage, f"{directory}{_METADATA_FOLDER}/{max(numbered)[1]}")

    def roots(self) -> Sequence[str]:
        return [self.storage.root]

    def _tree(self) -> Tree:
        return Tree(self.storage, _METADATA_FOLDER)


class FileSource(Source):
    """One table at one metadata file, called like its directory. Read only."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.name = path
        self.storage = storage
        self._path = path

    @cached_property
    def _loaded(self) -> LoadedTable:
        return load_file(self.storage, self._path)

    @property
    def _table(self) -> str:
        return posixpath.basename(posixpath.dirname(posixpath.dirname(self._path))) or "table"

    def namespaces(self) -> Sequence[Namespace]:
        return [(MAIN,)]

    def tables(self, namespace: Namespace) -> Sequence[str]:
        return [self._table] if namespace == (MAIN,) else []

    def load(self, namespace: Namespace, table: str) -> LoadedTable | None:
        return self._loaded

    def roots(self) -> Sequence[str]:
        return [posixpath.dirname(posixpath.dirname(self._path)).rstrip("/") + "/"]


def load_file(storage: Storage, path: str) -> LoadedTable:
    """The table of a metadata file. It may have been moved: what the metadata says of its place is then not true."""
    data = storage.read_bytes(path)
    try:
        content = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        version = content["format-version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is no metadata of an Iceberg table: {error}") from error
    if version not in VERSIONS:
        raise NotSupportedError(f"{path} has format version {version}; versions 1, 2 and 3 can be read here")
    with reported(f"reading {path}"):
        metadata = TableMetadataUtil.parse_obj(content)
    directory = posixpath.dirname(posixpath.dirname(path))
    return LoadedTable(metadata, path, moved(metadata.location, directory), storage)
