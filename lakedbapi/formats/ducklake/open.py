"""Opening a DuckLake: `DuckLakeFormat`, the registry's entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sqlalchemy import select

from lakedbapi.errors import OperationalError, ProgrammingError
from lakedbapi.formats.base import Format
from lakedbapi.formats.database_files import is_there, prepare_new
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.backends import backend_for
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.formats.ducklake.cleanup import is_own_name
from lakedbapi.formats.ducklake.create import create_catalog, is_initialised
from lakedbapi.formats.ducklake.options import Options
from lakedbapi.formats.ducklake.paths import data_directory
from lakedbapi.formats.ducklake.versions import DEFAULT, READ, check_creatable, check_version
from lakedbapi.storage.encryption import check_available
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.options import storage_options

_FILE_KINDS = ("sqlite", "duckdb")


class DuckLakeFormat(Format):
    """DuckLake, with its catalog in SQLite, PostgreSQL, MySQL or a DuckDB file."""

    name = "ducklake"

    def open(self, location: str, options: Mapping[str, str], *, read_only: bool, create: bool) -> DuckLakeCatalog:
        """Open the catalog at `location`, or make an empty one there if there is none and `create` is set.

        `location` is one of

        - `sqlite:/absolute/catalog.sqlite`, `duckdb:/absolute/catalog.ducklake`
        - `postgresql://user:password@host:port/database`, `mysql://user:password@host:port/database`, with options of
          the server's client in the query

        `options` (all text) are

        - `data_path`: where the data files lie: a directory or URL. Needed to make a catalog on a server; a catalog in
          a file has `<file>.files/` else. It must agree with what an existing catalog says, unless
        - `override_data_path` is `true`: then it counts for this catalog object and nothing is stored
        - `metadata_schema`: the database schema that holds the catalog (default: the server's own)
        - `create_if_not_exists`: `false` = as if `create` were not set
        - `busy_timeout`: milliseconds to wait for another process' lock
        - `data_inlining_row_limit`: counts where the catalog stores no such option; not stored
        - `ducklake_version`: the format version of a new catalog, 1.0 (the default) or 1.1
        - `automatic_migration`: `true` = a catalog of version 0.3 or 0.4 becomes one of 1.0, unless `read_only`
        - `encrypted`: `true` = each file of a new catalog is encrypted, with its key in the catalog; it must agree with
          what an existing catalog says
        - `storage_options.<name>`: what the fsspec filesystem of `data_path` takes; dots in `<name>` nest,
          `true`, `false`, JSON objects and lists become what they say

        Raises OperationalError if the catalog cannot be reached or is damaged, ProgrammingError if there is none or an
        option contradicts it, NotSupportedError for a format version or feature that is not supported.
        """
        create = create and not read_only and not _is_off(options.get("create_if_not_exists"))
        backend = backend_for(location, options, create=create)
        _prepare_file(backend, options, create)
        stored = self._stored_options(backend, options, create)
        version = check_version(stored.catalog.get("version"), backend.name)
        with backend.read() as connection:
            backend.adopt(connection, version)
        data_path = _data_path(backend, stored, options)
        storage = Storage.of(data_path, storage_options(options))
        catalog = DuckLakeCatalog(backend, storage, data_path, _session_options(options))
        if version in READ and not read_only and _is_on(options.get("automatic_migration")):
            catalog.migrate()
        return catalog

    def _stored_options(self, backend: Backend, options: Mapping[str, str], create: bool) -> Options:
        with backend.read() as connection:
            exists = is_initialised(connection, backend)
        if not exists and not create:
            raise ProgrammingError(f"{backend.name} holds no DuckLake catalog; connect without read_only to create one")
        if not exists:
            _check_new(options)
            version = options.get("ducklake_version") or DEFAULT
            encrypted = _is_on(options.get("encrypted"))
            create_catalog(backend, _new_data_path(backend, options), version, encrypted=encrypted)
        metadata = backend.tables.metadata.c
        with backend.read() as connection:
            rows = connection.execute(select(metadata.key, metadata.value, metadata.scope, metadata.scope_id)).all()
        stored = Options.of((key, value, scope, scope_id) for key, value, scope, scope_id in rows)
        _check_encryption(backend, stored, options.get("encrypted"))
        return stored


def _prepare_file(backend: Backend, options: Mapping[str, str], create: bool) -> None:
    if backend.kind not in _FILE_KINDS:
        return
    path = Path(backend.name)
    if is_there(path):
        # An empty file is a new database, or what a full disk has left of a catalog.
        if backend.kind == "sqlite" and _is_empty(path):
            _check_not_lost(path, _new_data_path(backend, options), options, "is an empty file", _is_data)
        return
    if create:
        _check_new(options)  # Before the database makes the file.
        _check_not_lost(path, _new_data_path(backend, options), options, "is not there", is_own_name)
    prepare_new(path, "DuckLake", create=create)


def _check_not_lost(
    path: Path, data_path: str, options: Mapping[str, str], state: str, is_of_lake: Callable[[str], bool]
) -> None:
    """OperationalError where a lake has its data already: a new one would take its files for orphans."""
    names = Storage.of(data_path, storage_options(options)).list().column("path").to_pylist()
    # Another process may have begun this lake, and written to it, in the meantime.
    if any(map(is_of_lake, names)) and (not is_there(path) or _is_empty(path)):
        raise OperationalError(
            f"catalog {path} {state}, but there are data files in {data_path}: the catalog seems to be lost. Restore "
            "it from a copy; to begin a new lake, choose another data_path or move these files away (without the "
            "catalog, CALL ducklake_add_data_files takes them into tables of the new lake)"
        )


def _is_data(path: str) -> bool:
    return path.endswith((".parquet", ".puffin"))


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _check_new(options: Mapping[str, str]) -> None:
    check_creatable(options.get("ducklake_version") or DEFAULT)
    if _is_on(options.get("encrypted")):
        check_available()


def _check_encryption(backend: Backend, stored: Options, given: str | None) -> None:
    is_encrypted = stored.catalog.get("encrypted") == "true"
    if (_is_on(given) and not is_encrypted) or (_is_off(given) and is_encrypted):
        raise ProgrammingError(
            f"catalog {backend.name} is of a lake that is {'' if is_encrypted else 'not '}encrypted, which cannot be "
            "changed; leave encrypted out, or copy the tables to a new lake"
        )


def _new_data_path(backend: Backend, options: Mapping[str, str]) -> str:
    given = options.get("data_path")
    if given:
        return data_directory(given)
    if backend.kind not in _FILE_KINDS:
        raise ProgrammingError(
            f"{backend.name} holds no DuckLake catalog; to create one, give data_path, a directory or URL"
        )
    return data_directory(f"{backend.name}.files/")


def _data_path(backend: Backend, stored: Options, options: Mapping[str, str]) -> str:
    """Where the data lies: what the catalog says, which a `data_path` that is given must agree with."""
    given = options.get("data_path")
    known = stored.catalog.get("data_path")
    if known is None and given is None:
        raise OperationalError(f"catalog {backend.name}: it names no data_path, so it is incomplete")
    path = data_directory(known or given or "")
    if given is None or data_directory(given) == path:
        return path
    if _is_on(options.get("override_data_path")):
        return data_directory(given)
    raise ProgrammingError(
        f"catalog {backend.name} has its data in {path}, not in {data_directory(given)}; leave data_path out, "
        "or set override_data_path=true if the data was moved"
    )


def _session_options(options: Mapping[str, str]) -> Mapping[str, str]:
    return {name: options[name] for name in ("data_inlining_row_limit",) if options.get(name)}


def _is_on(text: str | None) -> bool:
    return (text or "").strip().lower() in ("true", "1", "on", "yes")


def _is_off(text: str | None) -> bool:
    return (text or "").strip().lower() in ("false", "0", "off", "no")
