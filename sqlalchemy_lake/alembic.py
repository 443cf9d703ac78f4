"""Alembic's implementation of the lake: how migrations are written and how schemas are compared.

It registers by being imported. Alembic imports it through the entry point group `alembic.plugins` (1.18 and later), and
the dialect does as soon as both are there; with an older Alembic, a program that connects before it imports Alembic
writes `import sqlalchemy_lake.alembic`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import sqlglot
from alembic.ddl import base
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import ForeignKeyConstraint
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import String, TypeEngine

from sqlalchemy_lake.types import LIST, MAP, STRUCT, UUID

if TYPE_CHECKING:
    from alembic.autogenerate.api import AutogenContext
    from alembic.runtime.plugins import Plugin


def setup(plugin: Plugin) -> None:
    """Alembic's hook for plugins; importing this module did all there is to do."""


class _Plugins(ModuleType):
    """This module is a collection of itself: Alembic before 1.20 wants an entry point to be one, and cannot be
    imported otherwise; later ones want a module."""

    def __iter__(self) -> Iterator[ModuleType]:
        yield self


sys.modules[__name__].__class__ = _Plugins


class LakeImpl(DefaultImpl):
    """A migration is one transaction, and with that one snapshot, unless a later step must read what it changes."""

    __dialect__ = "lake"
    transactional_ddl = True

    def compare_type(self, inspector_column: Any, metadata_column: Any) -> bool:
        """Types differ if they are written differently."""
        write = self.dialect.type_compiler.process
        return bool(write(inspector_column.type) != write(metadata_column.type))

    def compare_server_default(
        self,
        inspector_column: Any,
        metadata_column: Any,
        rendered_metadata_default: str | None,
        rendered_inspector_default: str | None,
    ) -> bool:
        """Defaults differ if they are other expressions: spaces, case and needless parentheses do not count."""
        compiler = self.dialect.ddl_compiler(self.dialect, None)  # type: ignore[arg-type]
        stored, wanted = (
            _canonical(compiler.get_column_default_string(column)) for column in (inspector_column, metadata_column)
        )
        return stored != wanted

    def _compare_identity_default(
        self, metadata_identity: Any, inspector_identity: Any
    ) -> tuple[set[str], set[str], bool]:
        """Identity comes and goes with its column: there is nothing to alter."""
        return set(), set(), False

    def correct_for_autogen_constraints(
        self, conn_uniques: Any, conn_indexes: Any, metadata_unique_constraints: Any, metadata_indexes: Any
    ) -> None:
        """A lake has no indexes, so a model's are not missing."""
        metadata_indexes.clear()

    def correct_for_autogen_foreignkeys(self, conn_fks: Any, metadata_fks: Any) -> None:
        """Models leave the default schema out where reflection names it."""
        default = self.dialect.default_schema_name
        if all(_referred(key).schema != default for key in metadata_fks):
            for table in map(_referred, conn_fks):
                if table.schema == default:
                    table.schema = None

    def render_type(self, type_obj: TypeEngine[Any], autogen_context: AutogenContext) -> str | Any:
        """The lake's own types, as a migration script writes them; False = Alembic's way."""
        if not type(type_obj).__module__.startswith("sqlalchemy_lake"):
            return False
        autogen_context.imports.add("import sqlalchemy_lake")
        return _type_in_script(type_obj, autogen_context)


def _canonical(default: str | None) -> str | None:
    """The default in one spelling. `7` and `'7'` are one, since a column's type decides what they become."""
    if default is None:
        return None
    expression = sqlglot.parse_one(default, dialect="duckdb").unnest()
    return expression.name if expression.is_string else expression.sql(dialect="duckdb", normalize=True)


def _referred(key: ForeignKeyConstraint) -> Any:
    return key.elements[0].column.table


def _type_in_script(type_: TypeEngine[Any], context: AutogenContext) -> str:
    from alembic.autogenerate.render import _repr_type

    if isinstance(type_, STRUCT):
        fields = ", ".join(f"{name!r}: {_repr_type(field, context)}" for name, field in type_.fields.items())
        return f"sqlalchemy_lake.STRUCT({{{fields}}})"
    if isinstance(type_, LIST):
        return f"sqlalchemy_lake.LIST({_repr_type(type_.item_type, context)})"
    if isinstance(type_, MAP):
        key, value = _repr_type(type_.key_type, context), _repr_type(type_.value_type, context)
        return f"sqlalchemy_lake.MAP({key}, {value})"
    if isinstance(type_, UUID):  # SQLAlchemy 1.4 has none of its own
        return "sqlalchemy_lake.UUID()"
    return f"sqlalchemy_lake.{type_!r}"


@compiles(base.ColumnComment, "lake")
def _comment_on_column(element: Any, compiler: Any, **kw: Any) -> str:
    table = base.format_table_name(compiler, element.table_name, element.schema)
    column = base.format_column_name(compiler, element.column_name)
    text = "NULL" if element.comment is None else compiler.sql_compiler.render_literal_value(element.comment, String())
    return f"COMMENT ON COLUMN {table}.{column} IS {text}"


@compiles(base.RenameTable, "lake")
def _rename_table(element: Any, compiler: Any, **kw: Any) -> str:
    """A table stays in its schema: the new name has none."""
    table = base.alter_table(compiler, element.table_name, element.schema)
    return f"{table} RENAME TO {compiler.preparer.quote(element.new_table_name)}"
