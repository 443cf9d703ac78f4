"""DuckDB instances, kept for reuse: making one costs 20 times what a small query does."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import duckdb
import fsspec
import pyarrow as pa

from lakedbapi.engine.base import RelationName
from lakedbapi.engine.duckdb import confine, driver, output
from lakedbapi.engine.duckdb.encrypting import EncryptingFileSystem, encrypting_path
from lakedbapi.engine.duckdb.literal_paths import literal_paths
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.sql_types import quote_identifier, quote_literal
from lakedbapi.storage.encryption import check_available

_MAX_IDLE = 4
_RESERVED = frozenset({"memory", "temp", "system", ""})

_idle: list[Instance] = []
_lock = threading.Lock()


@dataclass(eq=False)
class Instance:
    """One in-memory DuckDB with nothing in it but views.

    `confined` are the real directories that local paths must be in, where DuckDB does not see to it. `defined` holds
    the view text by name; `lock` guards definitions and the start of a statement.
    """

    key: object
    connection: duckdb.DuckDBPyConnection
    confined: tuple[str, ...] | None
    threads: int
    filesystems: tuple[fsspec.AbstractFileSystem, ...]
    encrypting: EncryptingFileSystem
    attached: set[str] = field(default_factory=set)
    defined: dict[RelationName, str] = field(default_factory=dict)
    schemas: set[tuple[str, str]] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)
    broken: bool = False
    """Whether a statement failed by a fault of DuckDB, after which it refuses all others."""

    def encrypted_output(self) -> EncryptingFileSystem:
        """Where files are encrypted while they are written."""
        check_available()
        return self.encrypting

    def attach(self, catalogs: Iterable[str]) -> None:
        """Make exactly `catalogs` the attached ones, each an empty in-memory database."""
        wanted = {name.casefold(): name for name in catalogs}
        for name in self.attached - set(wanted.values()):
            driver.run(self.connection, f"DETACH {quote_identifier(name)}")
            self.attached.discard(name)
        for name in wanted.values():
            if name not in self.attached:
                driver.run(self.connection, f"ATTACH ':memory:' AS {quote_identifier(name)}")
                self.attached.add(name)

    def clear(self) -> None:
        """Drop everything, for the next user."""
        for name in self.attached:
            driver.run(self.connection, f"DETACH {quote_identifier(name)}")
        self.attached.clear()
        self.defined.clear()
        self.schemas.clear()


def check_alias(name: str) -> None:
    if name.casefold() in _RESERVED:
        raise ProgrammingError(
            f"A catalog cannot be attached as {name!r}: the engine uses this name itself. Choose another alias."
        )


def acquire(roots: Sequence[str], filesystems: Sequence[fsspec.AbstractFileSystem], allow_external: bool) -> Instance:
    """An idle or new instance that can reach `roots` and, unless `allow_external`, nothing else."""
    directories = tuple(sorted({directory for root in roots for directory in _directories(root, filesystems)}))
    key = (os.getpid(), directories, tuple(sorted(id(fs) for fs in filesystems)), allow_external)
    with _lock:
        for index, instance in enumerate(_idle):
            if instance.key == key:
                return _idle.pop(index)
    confined = directories if confine.NEEDED and not allow_external else None
    encrypting = EncryptingFileSystem(tuple(filesystems))
    connection = _connect(directories, [*filesystems, encrypting], allow_external)
    threads = driver.rows(connection, "SELECT current_setting('threads') AS threads", {})[0]["threads"]
    assert isinstance(threads, int)
    instance = Instance(key, connection, confined, threads, tuple(filesystems), encrypting)
    _alive.add(instance)
    return instance


def release(instance: Instance) -> None:
    """Give an instance back. One that cannot be cleaned is closed."""
    if instance.broken:
        instance.connection.close()
        return
    try:
        instance.clear()
    except duckdb.Error:
        instance.connection.close()
        return
    with _lock:
        _idle.append(instance)
        surplus = _idle.pop(0) if len(_idle) > _MAX_IDLE else None
    if surplus is not None:
        surplus.connection.close()


def _directories(root: str, filesystems: Sequence[fsspec.AbstractFileSystem]) -> set[str]:
    """The root as it is written in paths; without symbolic links; and as its filesystem spells it (`memory:///x` for `memory://x`)."""
    if "://" not in root:
        return {root, os.path.realpath(root) + "/"}
    fs = output.filesystem_of(root, filesystems)
    return {root} if fs is None else {root, fs.unstrip_protocol(fs._strip_protocol(root)).rstrip("/") + "/"}


def _connect(
    directories: tuple[str, ...], filesystems: Sequence[fsspec.AbstractFileSystem], allow_external: bool
) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": False})
    # Before the settings: DuckDB 1.5 takes a URL in them for a local path unless somebody serves it.
    for fs in filesystems:
        connection.register_filesystem(fs)
    settings = [
        "SET GLOBAL TimeZone = 'UTC'",
        "SET allow_persistent_secrets = false",
        "SET enable_progress_bar = false",
        *driver.SETTINGS,
    ]
    if not allow_external:
        # What is read is compared as it is written there, wildcards and all.
        directories = tuple({*directories, *literal_paths(pa.array(directories, pa.string())).to_pylist()})
        directories = (*directories, *map(encrypting_path, directories))
        settings += [
            *([f"SET allowed_configs = {_list(driver.ALLOWED_CONFIGS)}"] if driver.ALLOWED_CONFIGS else ()),
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET allow_community_extensions = false",
            f"SET allowed_directories = {_list(directories)}",
            # A directory is not in itself, but files are written "to" it.
            f"SET allowed_paths = {_list(d.rstrip('/') for d in directories)}",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ]
    for setting in settings:
        driver.run(connection, setting)
    return connection


def _list(paths: Iterable[str]) -> str:
    return f"[{', '.join(quote_literal(path) for path in paths)}]"


def _forget_after_fork() -> None:
    """A forked child has the parent's instances but not their threads, for which DuckDB waits when it closes one: leave
    them alone, and keep them from being collected, in use or not."""
    global _lock
    _lock = threading.Lock()
    _leaked.extend(_alive)
    _idle.clear()


_alive: WeakSet[Instance] = WeakSet()
_leaked: list[Instance] = []
os.register_at_fork(after_in_child=_forget_after_fork)
