"""Runs statements inside the open transaction of one connection: the only place that knows all parts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakedbapi import ddl, dml, formats, maintenance, query, sql
from lakedbapi.context import Context, Counted
from lakedbapi.engine.base import Engine, Result, TableResult
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.errors import (
    ConflictError,
    Error,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.progress import Progress, Report
from lakedbapi.outcome import Outcome
from lakedbapi.procedures import PROCEDURES
from lakedbapi.sql import guard
from lakedbapi.sql import statements as st
from lakedbapi.transaction import CatalogView, Transaction
from lakedbapi.url import ConnectOptions, parse_attach

Parameters = Sequence[object] | Mapping[str, object] | None

RETRIES = 100
"""How often an autocommit statement is run again after a conflict; each run starts on the then newest snapshot."""
RETRY_WAIT = 0.002
"""Seconds before the second run; grows with every further one, up to `RETRY_WAIT_MAX`."""
RETRY_WAIT_MAX = 0.1
WITHOUT_CATALOG = ("memory", "main")
"""The search path of a connection without a current catalog: the engine's own, which is empty."""


class Session:
    """The state behind a connection: attached catalogs, current schema, transaction, engine. Methods are
    thread-safe."""

    def __init__(self, options: ConnectOptions) -> None:
        self._options = options
        self._lock = threading.RLock()
        self._catalogs: dict[str, Catalog] = {}
        self._read_only: dict[str, AsOf | None] = {}
        """Catalogs that were attached for reading, and at which point: None = the newest state."""
        self._engine: Engine | None = None
        self._transaction: Transaction | None = None
        self._explicit = False
        self._autocommit = options.autocommit
        self._closed = False
        self._process = os.getpid()
        self.registered: dict[str, pa.Table | pa.RecordBatchReader] = {}
        self.last_snapshot: int | None = None
        self._committed: dict[str, int] = {}
        self.progress: Report | None = None
        self._cancelled = threading.Event()
        self.search_path = (options.alias, options.schema) if options.format is not None else WITHOUT_CATALOG
        if options.format is not None:
            self._catalogs[options.alias] = _open(options)

    @property
    def read_only(self) -> bool:
        return self._options.read_only or self._options.as_of is not None

    @property
    def catalogs(self) -> Mapping[str, Catalog]:
        return self._catalogs

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self.in_transaction:
            raise ProgrammingError("autocommit cannot be changed inside a transaction: commit or roll back first")
        self._transaction = None
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to commit or an explicit BEGIN is open."""
        return self._explicit or (self._transaction is not None and self._transaction.staged is not None)

    def execute(self, text: str, parameters: Parameters = None, *, as_of: AsOf | None = None) -> Outcome:
        """Run one statement. On failure the transaction is as it was before the statement."""
        with self._lock, _naming(text):
            parsed = self._parse(text)
            values = sql.bind(parsed.parameters, parameters)
            return self._run(
                lambda context: self._dispatch(_named(parsed, context), context), values, as_of, parsed.statement
            )

    def execute_many(self, text: str, parameter_sets: Sequence[Parameters], *, as_of: AsOf | None = None) -> Outcome:
        """Run one DML statement for each parameter set, atomically; `rowcount` is the sum."""
        with self._lock, _naming(text):
            parsed = self._parse(text)
            if not isinstance(parsed.statement, (st.Insert, st.Update, st.Delete, st.Merge)):
                raise ProgrammingError(
                    "executemany takes INSERT, UPDATE, DELETE or MERGE; use execute for anything else"
                )
            values = [sql.bind(parsed.parameters, parameters) for parameters in parameter_sets]

            def run(context: Context) -> Outcome:
                _check_file_names(parsed, context)
                statement = _named(parsed, context).statement
                assert isinstance(statement, (st.Insert, st.Update, st.Delete, st.Merge))
                return Outcome.of(dml.execute_many(_writable(context), statement, values))

            return self._run(run, {}, as_of, parsed.statement)

    def ingest(
        self,
        name: str,
        data: pa.Table | pa.RecordBatchReader,
        mode: str,
        *,
        catalog: str | None = None,
        schema: str | None = None,
    ) -> int:
        """Append Arrow data to a table, streaming. `mode`: create, append, replace, create_append. Returns the row
        count."""
        if mode not in ("create", "append", "replace", "create_append"):
            raise ProgrammingError(f"unknown ingest mode {mode!r}: use create, append, replace or create_append")
        default_catalog, default_schema = self.search_path
        target = st.Name((catalog or default_catalog, schema or default_schema, name))

        def run(context: Context) -> Outcome:
            _writable(context)
            if mode != "append":
                create = ddl.create_table_for(
                    target, data.schema, replace=mode == "replace", keep=mode == "create_append"
                )
                ddl.execute(context, create)
            alias, _, _, table = query.resolve_table(context, target)
            return Outcome(rowcount=dml.append(context, alias, table, data))

        with self._lock:
            return self._run(run, {}, None, None, once=not isinstance(data, pa.Table)).rowcount

    def register(self, name: str, data: pa.Table | pa.RecordBatchReader) -> None:
        """Let SQL name the Arrow object as a table."""
        with self._lock:
            self.registered[name] = data

    def unregister(self, name: str) -> None:
        with self._lock:
            self.registered.pop(name, None)

    def attach(self, location: str, alias: str | None = None, options: Mapping[str, str] | None = None) -> str:
        """Attach another catalog; returns its alias."""
        with self._lock:
            self._check_open()
            attached = parse_attach(location, alias, options or {})
            if attached.alias in self._catalogs:
                raise ProgrammingError(f"a catalog named {attached.alias!r} is attached already: choose another alias")
            catalog = _open(attached)
            if attached.as_of is not None:
                catalog.as_of(attached.as_of)
            self._catalogs[attached.alias] = catalog
            if attached.read_only:
                self._read_only[attached.alias] = attached.as_of
            if self._transaction is not None:
                self._transaction.catalogs = dict(self._catalogs)
                self._transaction.reading = dict(self._read_only)
            self._drop_engine()
            if self._options.format is None and len(self._catalogs) == 1:
                self.search_path = (attached.alias, attached.schema)
            return attached.alias

    def detach(self, alias: str) -> None:
        with self._lock:
            if self.in_transaction:
                raise ProgrammingError("DETACH cannot run inside a transaction with changes: commit or roll back first")
            found = self._attached(alias)
            self._catalogs.pop(found).release()
            self._committed.pop(found, None)
            self._read_only.pop(found, None)
            if self.search_path[0] == found:
                self.search_path = WITHOUT_CATALOG
            self._transaction = None
            self._drop_engine()

    def begin(self) -> None:
        with self._lock:
            if self.in_transaction:
                raise ProgrammingError("a transaction is open already: commit or roll back first, or use SAVEPOINT")
            self._transaction = None
            self._explicit = True

    def commit(self) -> int | None:
        """Commit; returns the new snapshot's id, None when there was nothing to commit. The transaction ends in any
        case."""
        with self._lock:
            self._check_open()
            self._cancelled.clear()
            return self._end()

    def rollback(self) -> None:
        with self._lock:
            transaction, self._transaction, self._explicit = self._transaction, None, False
            if transaction is not None and not self._is_forked:
                dml.discard(transaction, transaction.written)

    def savepoint(self, name: str) -> None:
        with self._lock:
            if self._autocommit and not self._explicit:
                raise ProgrammingError("SAVEPOINT needs a transaction: BEGIN first, or turn autocommit off")
            self._open_transaction().savepoint(name)

    def release(self, name: str) -> None:
        with self._lock:
            self._open_transaction().release(name)

    def rollback_to(self, name: str) -> None:
        with self._lock:
            self._open_transaction().rollback_to(name)

    def interrupt(self) -> None:
        """Stop the running statement, from any thread, between its queries as well; it raises OperationalError."""
        self._cancelled.set()
        engine = self._engine
        if engine is not None:
            engine.interrupt()

    def close(self) -> None:
        """Roll back and release everything. Closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self.rollback()
            self._closed = True
            if self._is_forked:
                return
            self._drop_engine()
            for catalog in self._catalogs.values():
                catalog.release()

    def catalog_view(self, alias: str, as_of: AsOf | None = None) -> CatalogView:
        """The catalog as the open transaction sees it, or as it was at `as_of`. In autocommit: as it is now."""
        with self._lock:
            self._check_open()
            view = self._open_transaction().view(self._attached(alias), as_of)
            if self._autocommit and not self._explicit:
                self._transaction = None
            return view

    def context(self, values: Mapping[str, object] | None = None, as_of: AsOf | None = None) -> Context:
        """The context of a statement that would run now, in the open transaction."""
        return Context(
            self._get_engine(),
            self._open_transaction(),
            self.search_path,
            values or {},
            self.registered,
            as_of,
            self._options.allow_external,
            self._report,
        )

    def _report(self, progress: Progress) -> None:
        """Between the steps of a statement: what the engine runs within one, it interrupts itself."""
        self._check_cancelled()
        if self.progress is not None:
            self.progress(progress)

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise OperationalError("The statement was cancelled.")

    def _parse(self, text: str) -> st.Parsed:
        self._check_open()
        parsed = sql.parse(text)
        guard.check(parsed, allow_external=self._options.allow_external)
        return parsed

    def _run(
        self,
        run: Callable[[Context], Outcome],
        values: Mapping[str, object],
        as_of: AsOf | None,
        statement: st.Statement | None,
        *,
        once: bool = False,
    ) -> Outcome:
        """Run a statement in the transaction, or in one of its own, which is committed, and tried again when it
        conflicts."""
        self._check_open()
        self._cancelled.clear()
        if isinstance(statement, SESSION_STATEMENTS):
            return self._control(statement)
        if not self._autocommit or self._explicit:
            return self._atomically(run, values, as_of)
        for attempt in range(RETRIES):
            try:
                self._check_cancelled()
                outcome = self._atomically(run, values, as_of)
                snapshot = self._end()
                return replace(outcome, snapshot=snapshot)
            except ConflictError:
                if once or attempt == RETRIES - 1:
                    raise
                time.sleep(min(RETRY_WAIT * (attempt + 1), RETRY_WAIT_MAX))
            finally:
                self.rollback()
        raise AssertionError("unreachable")

    def _atomically(
        self, run: Callable[[Context], Outcome], values: Mapping[str, object], as_of: AsOf | None
    ) -> Outcome:
        context = self.context(values, as_of)
        transaction = context.transaction
        mark, written = transaction.mark(), set(transaction.written)
        try:
            with query.naming_unknown(context):
                return run(context)
        except BaseException:
            transaction.back_to(mark)
            dml.discard(transaction, transaction.written - written)
            raise

    def _dispatch(self, parsed: st.Parsed, context: Context) -> Outcome:
        _check_file_names(parsed, context)
        return HANDLERS[type(parsed.statement)](self, parsed.statement, context)

    def _select(self, statement: st.Select, context: Context) -> Outcome:
        call = sql.only_procedure(statement)
        if call is not None:
            result = self._procedure(call, context)
            assert result is not None
            name = statement.specials[0].name
            context = replace(context, registered={**context.registered, name: result.reader().read_all()})
            statement = replace(statement, specials=())
        planned = query.plan(context, statement)
        return Outcome(result=context.engine.query(planned), nullable=query.nullability(context, statement))

    def _dml(self, statement: Any, context: Context) -> Outcome:
        return Outcome.of(DML[type(statement)](_writable(context), statement))

    def _ddl(self, statement: Any, context: Context) -> Outcome:
        ddl.execute(_writable(context), statement)
        return Outcome()

    def _create_table(self, statement: st.CreateTable, context: Context) -> Outcome:
        source = statement.source
        planned = query.plan(context, source) if source is not None else None
        created = ddl.create_table(_writable(context), statement)
        if created is None or planned is None or not statement.with_data:
            return Outcome(rowcount=-1 if planned is None else 0)
        alias, table = created
        return Outcome(rowcount=dml.append(context, alias, table, planned))

    def _show(self, statement: st.Show, context: Context) -> Outcome:
        return Outcome(result=query.show(context, statement))

    def _describe(self, statement: st.Describe, context: Context) -> Outcome:
        return Outcome(result=query.describe(context, statement))

    def _explain(self, statement: st.Explain, context: Context) -> Outcome:
        inner = statement.statement
        if isinstance(inner, st.Select):
            return Outcome(result=query.explain(context, inner, analyze=statement.analyze))
        if not isinstance(inner, (st.Insert, st.Update, st.Delete, st.Merge, st.Truncate)) or statement.analyze:
            raise ProgrammingError("EXPLAIN takes a SELECT, INSERT, UPDATE, DELETE or MERGE, EXPLAIN ANALYZE a SELECT")
        lines = dml.explain(context, inner)
        return Outcome(result=TableResult(pa.table({"explain": pa.array(lines, pa.string())}), ["VARCHAR"]))

    def _call(self, statement: st.Call, context: Context) -> Outcome:
        result = self._procedure(statement, context)
        return self._select(query.call_as_select(statement), context) if result is None else Outcome(result=result)

    def _procedure(self, call: st.Call, context: Context) -> Result | None:
        """The result of a call that changes something; None when it does not."""
        procedure = PROCEDURES.get(call.name.last.casefold())
        if procedure is not None:
            procedure(_writable(context), call)
            return maintenance.SUCCESS
        result = maintenance.call(context, call)
        if result is not None:
            self._look_again()
        return result

    def _maintain(self, statement: Any, context: Context) -> Outcome:
        result = MAINTENANCE[type(statement)](context, statement)
        self._look_again()
        return Outcome(result=result)

    def _history(self, statement: st.DescribeHistory, context: Context) -> Outcome:
        return Outcome(result=query.describe_history(context, statement))

    def _look_again(self) -> None:
        """Pin a new snapshot at the next statement, unless an explicit transaction keeps the old one."""
        if not self.in_transaction:
            self._transaction = None

    def _control(self, statement: st.Statement) -> Outcome:
        match statement:
            case st.TransactionControl(action, name):
                getattr(self, action.replace(" ", "_"))(*(() if name is None else (name,)))
            case st.Use(name):
                self._use(name)
            case st.Attach():
                self._attach_statement(statement)
            case st.Detach(alias, if_exists):
                if not if_exists or any(alias.casefold() == name.casefold() for name in self._catalogs):
                    self.detach(alias)
        return Outcome()

    def _attach_statement(self, statement: st.Attach) -> None:
        if not (self._options.allow_attach or self._options.allow_external):
            raise ProgrammingError(
                "ATTACH is switched off for this connection, since it opens files that the connection was not given: "
                "use connection.attach(), or connect with allow_attach=True"
            )
        attached = parse_attach(statement.location, statement.alias, dict(statement.options))
        if not (statement.if_not_exists and attached.alias in self._catalogs):
            self.attach(statement.location, statement.alias, dict(statement.options))

    def _use(self, name: st.Name) -> None:
        context = self.context()
        self.search_path = query.resolve_schema_path(context, name)
        if self._transaction is not None and not self.in_transaction:
            self._transaction = None

    def _attached(self, alias: str) -> str:
        found = next((name for name in self._catalogs if name.casefold() == alias.casefold()), None)
        if found is None:
            raise ProgrammingError(
                f"no catalog named {alias!r} is attached; attached are: {', '.join(self._catalogs) or 'none'}"
            )
        return found

    def _open_transaction(self) -> Transaction:
        if self._transaction is None:
            self._transaction = Transaction(
                dict(self._catalogs),
                as_of=self._options.as_of,
                read_only=self._options.read_only,
                reading=dict(self._read_only),
                committed=self._committed,
            )
        return self._transaction

    def _end(self) -> int | None:
        """Commit what the statements have staged: the new snapshot's id."""
        transaction, self._transaction, self._explicit = self._transaction, None, False
        if transaction is None:
            return None
        snapshot = self._commit(transaction)
        self.last_snapshot = snapshot if snapshot is not None else self.last_snapshot
        return snapshot

    def _commit(self, transaction: Transaction) -> int | None:
        if transaction.staged is None:
            dml.discard(transaction, transaction.written)
            return None
        result = dml.commit(self._get_engine(), transaction)
        return result.snapshot if result.is_new else None

    def _get_engine(self) -> Engine:
        if self._engine is None:
            catalogs = self._catalogs.values()
            remote = [catalog.storage.filesystem for catalog in catalogs if not catalog.storage.is_local]
            self._engine = DuckDBEngine(
                self._data_roots(),
                remote,
                list(self._catalogs),
                allow_external=self._options.allow_external,
                find_roots=self._data_roots,
                cancelled=self._cancelled,
            )
        return self._engine

    def _data_roots(self) -> list[str]:
        return [root for catalog in self._catalogs.values() for root in catalog.data_roots()]

    def _drop_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    @property
    def _is_forked(self) -> bool:
        """Whether this is a copy in a forked process, whose transaction and engine belong to another."""
        return self._process != os.getpid()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")
        if self._is_forked:
            raise InterfaceError("the connection belongs to the process that this one was forked from: connect anew")


DML: Mapping[type, Callable[[Context, Any], Counted]] = {
    st.Insert: dml.insert,
    st.Update: dml.update,
    st.Delete: dml.delete,
    st.Merge: dml.merge,
    st.Truncate: dml.truncate,
    st.Restore: dml.restore,
}

MAINTENANCE: Mapping[type, Callable[[Context, Any], Result]] = {
    st.Checkpoint: maintenance.checkpoint,
    st.Optimize: maintenance.optimize,
    st.Reorg: maintenance.reorg,
    st.Vacuum: maintenance.vacuum,
    st.Purge: maintenance.purge,
    st.PutRef: maintenance.put_ref,
    st.DropRef: maintenance.drop_ref,
}

SESSION_STATEMENTS = (st.TransactionControl, st.Use, st.Attach, st.Detach)
"""Statements that change the session itself and run outside any transaction of their own."""

HANDLERS: Mapping[type, Callable[[Session, Any, Context], Outcome]] = {
    st.Select: Session._select,
    **dict.fromkeys(DML, Session._dml),
    **dict.fromkeys(
        (
            st.CreateSchema,
            st.DropSchema,
            st.DropTable,
            st.CreateView,
            st.CreateMacro,
            st.DropMacro,
            st.AlterTable,
            st.CommentOn,
        ),
        Session._ddl,
    ),
    st.CreateTable: Session._create_table,
    st.Show: Session._show,
    st.Describe: Session._describe,
    st.Explain: Session._explain,
    st.Call: Session._call,
    **dict.fromkeys(MAINTENANCE, Session._maintain),
    st.DescribeHistory: Session._history,
}


@contextmanager
def _naming(text: str) -> Iterator[None]:
    """Every error carries the statement; one about other systems' SQL says what to write here."""
    try:
        yield
    except Error as error:
        if error.statement is None:
            error.statement = text
        instead = sql.way_out(text, error) if isinstance(error, (ProgrammingError, NotSupportedError)) else None
        if instead is not None:
            raise NotSupportedError(instead, statement=text) from error
        raise


def _named(parsed: st.Parsed, context: Context) -> st.Parsed:
    """With `a.b.t` as the relation of a schema inside of another, where the current catalog has such a schema."""
    nested = query.nested_schemas(context)
    return sql.parse(parsed.text, nested) if nested else parsed


def _check_file_names(parsed: st.Parsed, context: Context) -> None:
    """ProgrammingError for the name of a file, unless a relation is called so."""
    for file in () if context.allow_external else parsed.file_names:
        if file.name.last not in context.registered and query.find_relation(context, file.name) is None:
            raise file.error


def _writable(context: Context) -> Context:
    if context.as_of is not None:
        raise ProgrammingError("a statement that reads the past (as_of) cannot change anything")
    return context


def _open(options: ConnectOptions) -> Catalog:
    assert options.format is not None
    return formats.get(options.format).open(
        options.location, options.format_options, read_only=options.read_only, create=not options.read_only
    )
