"""`LakeDialect`: what the lake can do, as flags, and how connections are made and driven."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import exc, schema
from sqlalchemy.engine import URL, default

from sqlalchemy_lake import orm
from sqlalchemy_lake.compiler import LakeCompiler, LakeIdentifierPreparer
from sqlalchemy_lake.ddl import LakeDDLCompiler
from sqlalchemy_lake.reflection import LakeInspector, LakeReflection, driver_connection
from sqlalchemy_lake.timetravel import point_of
from sqlalchemy_lake.type_compiler import LakeTypeCompiler
from sqlalchemy_lake.types import COLSPECS

SNAPSHOT, AUTOCOMMIT = "SNAPSHOT", "AUTOCOMMIT"

_COMMITTED_WITHOUT_FUTURE = (
    *("merge", "truncate", "call", "comment", "with", "use", "attach", "detach"),
    *("optimize", "reorg", "vacuum", "restore", "checkpoint", "purge"),
)


class LakeExecutionContext(default.DefaultExecutionContext):
    """Hands the execution option `lake_as_of` to the cursor: compiled SQL is cached without it."""

    def create_cursor(self) -> Any:
        cursor = super().create_cursor()
        cursor.as_of = point_of(self.execution_options.get("lake_as_of"))
        return cursor

    def create_server_side_cursor(self) -> Any:
        """Every cursor streams."""
        return self._dbapi_connection.cursor()

    def should_autocommit_text(self, statement: str) -> bool:
        """What SQLAlchemy 1.4 commits by itself without `future`; its own list has only plain DML and DDL."""
        return bool(super().should_autocommit_text(statement)) or statement.lstrip().lower().startswith(
            _COMMITTED_WITHOUT_FUTURE
        )


class LakeDialect(LakeReflection, default.DefaultDialect):
    """One dialect for all formats and URLs: its name is `lake`, its driver `lakedbapi`."""

    name = "lake"
    driver = "lakedbapi"
    default_paramstyle = "qmark"

    statement_compiler = LakeCompiler
    ddl_compiler = LakeDDLCompiler
    type_compiler = LakeTypeCompiler  # SQLAlchemy 1.4's name of the next
    type_compiler_cls = LakeTypeCompiler
    preparer = LakeIdentifierPreparer
    execution_ctx_cls = LakeExecutionContext
    inspector = LakeInspector

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_native_enum = False
    supports_alter = True
    supports_comments = True
    inline_comments = False
    supports_schemas = True
    supports_views = True
    supports_sequences = False
    supports_identity_columns = True
    supports_default_values = True
    supports_default_metavalue = True
    supports_empty_insert = True
    supports_multivalues_insert = True
    supports_is_distinct_from = True
    supports_server_side_cursors = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_simple_order_by_label = True
    postfetch_lastrowid = True
    favor_returning_over_lastrowid = True
    requires_name_normalize = False
    div_is_floordiv = False
    cte_follows_insert = False
    tuple_in_values = True
    max_identifier_length = 255
    default_schema_name: str | None = "main"

    insert_returning = True
    update_returning = True
    delete_returning = True
    implicit_returning = True
    full_returning = True
    update_returning_multifrom = True
    delete_returning_multifrom = True
    # The driver takes any number of rows at once and returns theirs in the same order: nothing is gained by
    # writing them into the text.
    use_insertmanyvalues = False
    use_insertmanyvalues_wo_returning = False
    insert_executemany_returning = True
    insert_executemany_returning_sort_by_parameter_order = True

    colspecs: Mapping[type[Any], type[Any]] = COLSPECS
    construct_arguments = [  # noqa: RUF012 - SQLAlchemy's protocol
        (schema.Table, {"partitioned_by": None, "sorted_by": None, "properties": None}),
    ]

    def __init__(
        self,
        json_serializer: Callable[[Any], str] | None = None,
        json_deserializer: Callable[[str], Any] | None = None,
        **kw: Any,
    ) -> None:
        """`json_serializer` and `json_deserializer` take the place of `json.dumps` and `json.loads`."""
        super().__init__(**kw)
        self._json_serializer = json_serializer
        self._json_deserializer = json_deserializer

    @classmethod
    def import_dbapi(cls) -> Any:
        import lakedbapi

        return lakedbapi

    @classmethod
    def dbapi(cls) -> Any:
        """SQLAlchemy 1.4's name of `import_dbapi`; on instances the module hides it."""
        return cls.import_dbapi()

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        return [url.render_as_string(hide_password=False)], {}

    def get_default_isolation_level(self, dbapi_conn: Any) -> str:
        return self.get_isolation_level(dbapi_conn)

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[str]:
        return [SNAPSHOT, AUTOCOMMIT]

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        return AUTOCOMMIT if dbapi_connection.autocommit else SNAPSHOT

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        if level not in (SNAPSHOT, AUTOCOMMIT):
            raise exc.ArgumentError(
                f"Invalid value {level!r} for isolation_level. Valid isolation levels for {self.name!r} are "
                f"{SNAPSHOT}, {AUTOCOMMIT}"
            )
        _below_pool(dbapi_connection).autocommit = level == AUTOCOMMIT

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def do_begin(self, dbapi_connection: Any) -> None:
        """A transaction opens with its first statement."""

    def do_savepoint(self, connection: Any, name: str) -> None:
        driver_connection(connection).savepoint(name)

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        driver_connection(connection).rollback_to(name)

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        driver_connection(connection).release(name)

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        if statement or context is None or not context.isddl:
            cursor.execute(statement, parameters)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """There is no server that could be gone."""
        return not dbapi_connection.closed

    def is_disconnect(self, e: BaseException, connection: Any, cursor: Any) -> bool:
        return bool(getattr(connection, "closed", False))

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return tuple(int(part) for part in self.dbapi.__version__.split(".")[:3])


def _below_pool(connection: Any) -> Any:
    """SQLAlchemy 1.4 may hand over the pool's proxy, which would keep an attribute for itself."""
    return getattr(connection, "dbapi_connection", connection)


orm.install()
