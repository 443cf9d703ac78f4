"""Reflection: SQLAlchemy's questions answered from the snapshot that the connection's transaction reads.

The shapes are those of `sqlalchemy.engine.interfaces`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sqlalchemy import exc, util
from sqlalchemy.engine import reflection
from sqlalchemy.types import NullType

from lakedbapi.model.catalog import Constraint, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.types import Field, Identity
from lakedbapi.query.stored import shown
from lakedbapi.sql import type_of
from lakedbapi.transaction import CatalogView
from sqlalchemy_lake.timetravel import point_of
from sqlalchemy_lake.types import reflected

F = TypeVar("F", bound=Callable[..., Any])


def cached(method: F) -> F:
    """Ask once for an Inspector. As `sqlalchemy.engine.reflection.cache`, whose 1.4 version cannot read annotations."""

    @wraps(method)
    def ask(self: Any, connection: Any, *arguments: Any, **kw: Any) -> Any:
        cache = kw.get("info_cache")
        if cache is None:
            return method(self, connection, *arguments, **kw)
        options = tuple(sorted((name, value) for name, value in kw.items() if isinstance(value, (str, int, float))))
        key = (method.__name__, arguments, options)
        if key not in cache:
            cache[key] = method(self, connection, *arguments, **kw)
        return cache[key]

    return cast(F, ask)


class LakeReflection:
    """The reflection methods of the dialect."""

    def _get_default_schema_name(self, connection: Any) -> str:
        return str(driver_connection(connection).current_schema)

    @cached
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        view, _ = _catalog(connection, None)
        return sorted(schema.name for schema in view.schemas.values()) if view else []

    @cached
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        view, found = _catalog(connection, schema)
        return list(view.table_names(found)) if view and found else []

    @cached
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        view, found = _catalog(connection, schema)
        return (
            sorted(entry.name for entry in view.views.values() if entry.schema_id == found.id) if view and found else []
        )

    def get_materialized_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_temp_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    @cached
    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        return _catalog(connection, schema_name)[1] is not None

    @cached
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return _relation(connection, table_name, schema) is not None

    def has_sequence(self, connection: Any, sequence_name: str, schema: str | None = None, **kw: Any) -> bool:
        return False

    @cached
    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        found = _existing(connection, table_name, schema)
        if isinstance(found, ViewInfo):
            return _view_columns(connection, table_name, schema)
        view, _ = _catalog(connection, schema)
        assert view is not None
        return [{**_column(field), **_generation(view, found, field)} for field in found.schema.fields]

    @cached
    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> dict[str, Any]:
        keys = _constraints(connection, table_name, schema, "primary key")
        if not keys:
            return {"constrained_columns": [], "name": None}
        return {"constrained_columns": list(keys[0].columns), "name": keys[0].name}

    @cached
    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        default = driver_connection(connection).current_schema
        keys: list[dict[str, Any]] = []
        for key in _constraints(connection, table_name, schema, "foreign key"):
            referred_schema, referred_table = key.referred
            implicit = schema is None and referred_schema.casefold() == default.casefold()
            keys.append(
                {
                    "name": key.name,
                    "constrained_columns": list(key.columns),
                    "referred_schema": None if implicit else referred_schema,
                    "referred_table": referred_table,
                    "referred_columns": list(key.referred_columns),
                    "options": {},
                }
            )
        return keys

    @cached
    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        found = _constraints(connection, table_name, schema, "unique")
        return [{"name": c.name, "column_names": list(c.columns)} for c in found]

    @cached
    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        found = _constraints(connection, table_name, schema, "check")
        table, (view, _) = _existing(connection, table_name, schema), _catalog(connection, schema)
        if view is None or isinstance(table, ViewInfo):
            return []
        return [{"name": c.name, "sqltext": shown(view.catalog, table.schema, c.expression or "")} for c in found]

    @cached
    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        _existing(connection, table_name, schema)
        return []

    @cached
    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> dict[str, Any]:
        return {"text": _existing(connection, table_name, schema).comment}

    @cached
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        found = _existing(connection, view_name, schema)
        if not isinstance(found, ViewInfo):
            raise exc.NoSuchTableError(_shown(view_name, schema))
        return found.sql

    @cached
    def get_table_options(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> dict[str, Any]:
        found = _existing(connection, table_name, schema)
        if isinstance(found, ViewInfo):
            return {}
        options: dict[str, Any] = {}
        if found.partitioning is not None and found.partitioning.fields:
            quote = connection.dialect.identifier_preparer.quote
            names = {field.id: quote(field.name) for field in found.schema.fields}
            options["lake_partitioned_by"] = [
                _partition_key(names[key.field_id], key.transform) for key in found.partitioning.fields
            ]
        if found.sorting:
            options["lake_sorted_by"] = [
                f"{key.expression} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
                for key in found.sorting
            ]
        if found.properties:
            options["lake_properties"] = dict(found.properties)
        return options

    def get_snapshots(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        """The snapshots that changed the table, oldest first."""
        _existing(connection, table_name, schema)
        return _rows(connection, "history", table_name, schema)

    def get_data_files(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        """The table's live data files."""
        _existing(connection, table_name, schema)
        return _rows(connection, "files", table_name, schema)


class LakeInspector(reflection.Inspector):
    """An Inspector that also knows snapshots and data files."""

    def get_snapshots(self, table_name: str, schema: str | None = None) -> list[dict[str, Any]]:
        """The snapshots that changed the table, oldest first: snapshot_id, snapshot_time, changes, author and so on."""
        return self._ask("get_snapshots", table_name, schema)

    def get_data_files(self, table_name: str, schema: str | None = None) -> list[dict[str, Any]]:
        """The table's live data files, with their row counts and sizes."""
        return self._ask("get_data_files", table_name, schema)

    def _ask(self, question: str, table_name: str, schema: str | None) -> list[dict[str, Any]]:
        with self._operation_context() as connection:
            found: list[dict[str, Any]] = getattr(self.dialect, question)(connection, table_name, schema)
            return found


def driver_connection(connection: Any) -> Any:
    """The lakedbapi connection below a SQLAlchemy one."""
    raw = connection.connection
    # While SQLAlchemy 1.4 initializes a dialect there is no pool proxy yet.
    return getattr(raw, "dbapi_connection", raw)


def _catalog(connection: Any, schema: str | None) -> tuple[CatalogView | None, SchemaInfo | None]:
    """The catalog and schema that `schema` names: `schema` or `catalog.schema`; None = the current one.

    Without any attached catalog there is neither.
    """
    driver = driver_connection(connection)
    if not driver.catalogs:
        return None, None
    point = point_of(connection.get_execution_options().get("lake_as_of"))
    name = driver.current_schema if schema is None else str(schema)
    view = driver.catalog_view(as_of=point)
    found = view.schema(name)
    if found is None and "." in name:
        catalog, name = name.split(".", 1)
        if catalog in driver.catalogs:
            view = driver.catalog_view(catalog, as_of=point)
            found = view.schema(name)
    return view, found


def _relation(connection: Any, name: str, schema: str | None) -> TableInfo | ViewInfo | None:
    view, found = _catalog(connection, schema)
    if view is None or found is None:
        return None
    return view.table(found.name, name) or view.view(found.name, name)


def _existing(connection: Any, name: str, schema: str | None) -> TableInfo | ViewInfo:
    found = _relation(connection, name, schema)
    if found is None:
        raise exc.NoSuchTableError(_shown(name, schema))
    return found


def _constraints(connection: Any, name: str, schema: str | None, kind: str) -> list[Constraint]:
    """By name, the unnamed last."""
    found = _existing(connection, name, schema)
    if isinstance(found, ViewInfo):
        return []
    return sorted((c for c in found.constraints if c.kind == kind), key=lambda c: (c.name is None, c.name or ""))


def _column(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": reflected(field.type),
        "nullable": field.nullable,
        "default": field.default,
        "autoincrement": field.identity is not None,
        "comment": field.comment,
    }


def _generation(view: CatalogView, table: TableInfo, field: Field) -> dict[str, Any]:
    """How a column gets its values where that is more than counting from 1, which `autoincrement` says."""
    if field.generated is not None:
        return {"computed": {"sqltext": shown(view.catalog, table.schema, field.generated), "persisted": True}}
    if field.identity is None or field.identity == Identity():
        return {}
    counted = field.identity
    return {"identity": {"always": counted.always, "start": counted.start, "increment": counted.step}}


def _view_columns(connection: Any, name: str, schema: str | None) -> list[dict[str, Any]]:
    described = _cursor_rows(connection, f"DESCRIBE {_quoted(connection, name, schema)}")
    columns = []
    for row in described:
        try:
            type_ = reflected(type_of(row["column_type"]))
        except Exception:  # a type that no table can have, such as an ENUM expression
            util.warn(f"did not recognize type {row['column_type']!r} of column {row['column_name']!r}")
            type_ = NullType()
        columns.append(
            {
                "name": row["column_name"],
                "type": type_,
                "nullable": True,
                "default": None,
                "autoincrement": False,
                "comment": None,
            }
        )
    return columns


def _rows(connection: Any, function: str, name: str, schema: str | None) -> list[dict[str, Any]]:
    """The rows of a lake function about a table."""
    view, found = _catalog(connection, schema)
    assert view is not None
    assert found is not None
    catalog = connection.dialect.identifier_preparer.quote_identifier(view.alias)
    return _cursor_rows(connection, f"SELECT * FROM {catalog}.{function}(?, schema => ?)", name, found.name)


def _cursor_rows(connection: Any, text: str, *parameters: str) -> list[dict[str, Any]]:
    cursor = driver_connection(connection).cursor()
    cursor.as_of = point_of(connection.get_execution_options().get("lake_as_of"))
    try:
        cursor.execute(text, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    finally:
        cursor.close()


def _quoted(connection: Any, name: str, schema: str | None) -> str:
    preparer = connection.dialect.identifier_preparer
    quoted = preparer.quote_identifier(name)
    return quoted if schema is None else f"{preparer.format_schema(schema)}.{quoted}"


def _partition_key(column: str, transform: str) -> str:
    if transform == "identity":
        return column
    if "(" in transform:
        name, arguments = transform.rstrip(")").split("(", 1)
        return f"{name}({arguments}, {column})"
    return f"{transform}({column})"


def _shown(name: str, schema: str | None) -> str:
    return name if schema is None else f"{schema}.{name}"
