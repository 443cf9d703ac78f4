"""`DuckDBEngine`: each lake is an in-memory database of views, in which the user's own text runs."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.engine.base import Engine, Query, Relation, RelationName, Result, ScanRelation, WriteOptions, WriteSource
from lakedbapi.engine.duckdb import blame, confine, driver, errors, pool, write
from lakedbapi.engine.duckdb.encrypting import EncryptingFileSystem
from lakedbapi.engine.duckdb.mapping import needs_footers
from lakedbapi.engine.duckdb.parameters import bind
from lakedbapi.engine.duckdb.relations import Defined, define, use
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.result import DuckDBResult, text_type
from lakedbapi.errors import InterfaceError, InternalError, OperationalError
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Schema

_REPEAT_SECONDS = 0.02


class DuckDBEngine(Engine):
    """`roots` are the directories that queries may read and `write` may write, each ending in `/`.

    `filesystems` serve the URLs among them that DuckDB cannot. `catalogs` are the aliases of the attached lakes. With
    `allow_external` SQL may read and write whatever the process can. `find_roots` gives the directories anew, for a
    file in none of those that are known: another program may have added it. While `cancelled` is set, all that begins
    ends at once: whoever interrupts a statement of several queries sets it, and clears it before the next statement.
    """

    def __init__(
        self,
        roots: Sequence[str],
        filesystems: Sequence[fsspec.AbstractFileSystem],
        catalogs: Sequence[str],
        allow_external: bool = False,
        find_roots: Callable[[], Sequence[str]] | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        for name in catalogs:
            pool.check_alias(name)
        self._filesystems = tuple(filesystems)
        self._roots: tuple[str, ...] = tuple(roots)
        self._catalogs, self._allow_external = catalogs, allow_external
        self._find_roots = find_roots
        self._cancelled = cancelled or threading.Event()
        self._running: set[Execution] = set()
        self._results: weakref.WeakSet[DuckDBResult] = weakref.WeakSet()
        self._instance: pool.Instance | None = self._new_instance()

    def _new_instance(self) -> pool.Instance:
        instance = pool.acquire(self._roots, self._filesystems, self._allow_external)
        with errors.mapped():
            instance.attach(self._catalogs)
        return instance

    def query(self, query: Query) -> Result:
        execution = self._open(query.relations, query.search_path)
        try:
            stream, types = execution.stream(query)
        except BaseException:
            execution.close()
            raise
        result = DuckDBResult(stream, types, execution.close, execution.mapped)
        self._results.add(result)
        return result

    def fetch(self, query: Query) -> pa.Table:
        result = self.query(query)
        try:
            return result.reader().read_all()
        finally:
            result.close()

    def write(
        self,
        source: WriteSource,
        schema: Schema,
        options: WriteOptions,
        *,
        row_ids: bool = False,
        row_snapshots: bool = False,
    ) -> tuple[WrittenFile, ...]:
        relations: Mapping[RelationName, Relation] = source.relations if isinstance(source, Query) else {}
        search_path = source.search_path if isinstance(source, Query) else ("memory", "main")
        execution = self._open(relations, search_path, options.directory)
        try:
            embedded = write.embedded_columns(options.layout, row_ids, row_snapshots)
            return write.write(execution, source, schema, options, embedded)
        finally:
            execution.close()

    def keeps_order(self, scan: Scan) -> bool:
        """COPY does so for a single `read_parquet`, but not for a UNION ALL of several."""
        if scan.rows or len(scan.files) != 1:
            return False
        (group,) = scan.files
        apart = group.deletes or group.equality_deletes or group.encryption_keys
        return not apart and not needs_footers(scan.schema, group)

    def interrupt(self) -> None:
        for execution in tuple(self._running):
            execution.interrupt()

    def close(self) -> None:
        instance, self._instance = self._instance, None
        if instance is None:
            return
        for result in tuple(self._results):
            result.close()
        pool.release(instance)

    def _open(
        self,
        relations: Mapping[RelationName, Relation],
        search_path: tuple[str, str],
        target: str | None = None,
    ) -> Execution:
        """`target` is the directory that files are to be written to."""
        if self._instance is None:
            raise InterfaceError("The connection is closed.")
        if self._instance.broken:
            self._instance = self._new_instance()
        if self._find_roots is not None and not self._allow_external and self._leaves_roots(relations, target):
            self._roots = tuple(self._find_roots())
            pool.release(self._instance) if not self._running else None
            self._instance = self._new_instance()
        return Execution(self._instance, relations, search_path, self._filesystems, self._running, self._cancelled)

    def _leaves_roots(self, relations: Mapping[RelationName, Relation], target: str | None) -> bool:
        """Whether some files lie elsewhere."""
        if target is not None and not target.startswith(self._roots):
            return True
        scans = [relation.scan for relation in relations.values() if isinstance(relation, ScanRelation)]
        groups = [group for scan in scans for group in scan.files]
        lists = [files for group in groups for files in (group.files, *(d.files for d in group.equality_deletes))]
        for files in lists:
            paths = files.column("path")
            for root in self._roots:
                paths = paths.filter(pc.invert(pc.starts_with(paths, root)))
                if not len(paths):
                    break
            if len(paths):
                return True
        return False


class Execution:
    """One statement on a cursor of its own."""

    def __init__(
        self,
        instance: pool.Instance,
        relations: Mapping[RelationName, Relation],
        search_path: tuple[str, str],
        filesystems: tuple[fsspec.AbstractFileSystem, ...],
        running: set[Execution],
        cancelled: threading.Event,
    ) -> None:
        self.filesystems = filesystems
        self._instance = instance
        self._relations = relations
        self._search_path = search_path
        self._running = running
        self.cursor: duckdb.DuckDBPyConnection = instance.connection.cursor()
        self._defined = Defined()
        self._cancelled = False
        self._calls = 0
        self._directory: str | None = None
        self._all_cancelled = cancelled
        running.add(self)
        # Only now: whoever cancels either finds this execution running or has been seen here.
        self._cancelled = cancelled.is_set()

    def stream(self, query: Query) -> tuple[driver.Stream, tuple[str, ...]]:
        """The running statement and its columns' SQL types."""
        with self._instance.lock:
            self.prepare(explained=query.explained)
            with self.mapped():
                parameters = bind(query.sql, query.parameters)
                stream = driver.stream(self.cursor, self.over_relations(query.sql), parameters)
                if (sql := _as_text(query.sql, stream)) is None:
                    return stream, stream.types
                stream.reader.close()
                again = driver.stream(self.cursor, self.over_relations(sql), parameters)
                return replace(again, names=stream.names), stream.types

    @contextmanager
    def mapped(self) -> Iterator[None]:
        """Call DuckDB. Raise this package's error in place of its own, with the name of the file that it is about."""
        self._calls += 1
        try:
            self._check_cancelled()
            with errors.mapped(self._defined.broken):
                yield
        except errors.UnnamedFileError as error:
            raise blame.named(error, self._relations, self._directory, self.filesystems) from error
        except InternalError:
            self._instance.broken = True
            raise
        finally:
            self._calls -= 1

    def over_relations(self, sql: str) -> str:
        """A SELECT that can name all relations, after `prepare`."""
        return self._defined.over(sql)

    def resources(self) -> Resources:
        return Resources(self.cursor, self._instance.confined, self._instance.threads, self.filesystems)

    def start(self, sql: str, parameters: Mapping[str, object]) -> pa.RecordBatchReader:
        """Start a statement, after `prepare`."""
        with self.mapped():
            return driver.stream(self.cursor, sql, parameters).reader

    @contextmanager
    def sibling(self) -> Iterator[Execution]:
        """A second statement beside this one, without relations."""
        other = Execution(self._instance, {}, self._search_path, self.filesystems, self._running, self._all_cancelled)
        try:
            yield other
        finally:
            other.close()

    def encrypted_output(self) -> EncryptingFileSystem:
        return self._instance.encrypted_output()

    def confine(self, directory: str) -> None:
        """Refuse a directory to write to that a link leads out of the data paths."""
        self._directory = directory
        if self._instance.confined is not None:
            confine.check([directory], self._instance.confined)

    def rows(self, sql: str, parameters: Mapping[str, object]) -> list[dict[str, object]]:
        """Run a statement whose result is a few rows, after `prepare`."""
        with self.mapped():
            return driver.rows(self.cursor, sql, parameters)

    def prepare(self, *, explained: bool = False) -> None:
        """Define the relations and set the search path."""
        with self._instance.lock, self.mapped():
            self._defined = define(self._instance, self.cursor, self._relations, explained=explained)
            use(self._instance, self.cursor, *self._search_path)
            self._check_cancelled()

    def _check_cancelled(self) -> None:
        if self._cancelled:
            raise OperationalError(errors.CANCELLED)

    def interrupt(self) -> None:
        """From any thread: end the call of DuckDB that goes on, and let no other begin."""
        self._cancelled = True
        threading.Thread(target=self._interrupt_calls, name="lakedbapi-interrupt", daemon=True).start()

    def _interrupt_calls(self) -> None:
        """DuckDB forgets an interrupt that comes just before a statement begins: repeat it until the call has ended."""
        with suppress(duckdb.ConnectionException):  # It is closed.
            while self._calls:
                self.cursor.interrupt()
                time.sleep(_REPEAT_SECONDS)

    def close(self) -> None:
        self._running.discard(self)
        self.cursor.close()


def _as_text(sql: str, stream: driver.Stream) -> str | None:
    """`sql` with the columns as text that Arrow cannot hold; None when it can hold all."""
    texts = [text_type(type) for type in stream.types]
    if list(stream.types) == texts:
        return None
    names = [quote_identifier(f"c{i}") for i in range(len(texts))]
    columns = ", ".join(
        name if text == type else f"CAST({name} AS {text}) AS {name}"
        for name, text, type in zip(names, texts, stream.types, strict=True)
    )
    return f"SELECT {columns} FROM ({sql.rstrip().rstrip(';')}\n) AS _lake_rows({', '.join(names)})"
