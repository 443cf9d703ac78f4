"""What tables and macros of a catalog may have, which depends on its format version.

A program that meets a type which its version does not have refuses the whole lake.
"""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.ducklake.columns import flatten
from lakedbapi.formats.ducklake.versions import has_1_1
from lakedbapi.model.bucket import has_buckets
from lakedbapi.model.catalog import MacroInfo, TableInfo
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Scalar, Type

_SINCE_1_1 = Scalar("timestamptz_ns")
_RESERVED_SINCE_1_1 = "_ducklake_"


def check_columns(version: str, old: TableInfo | None, table: TableInfo) -> None:
    """Types that came later, and names that are the system's."""
    for nested in flatten(table.schema.fields):
        _check_type(version, nested.field.type, f"column {nested.field.name!r} of table {table.name!r}")
    if not has_1_1(version):
        return
    before = () if old is None else old.schema.names
    for name in table.schema.names:
        if name.casefold().startswith(_RESERVED_SINCE_1_1) and name not in before:
            raise ProgrammingError(
                f"table {table.name}: column name {name!r} is reserved, as all that begin with {_RESERVED_SINCE_1_1} "
                "are since format 1.1; choose another one"
            )


def check_parameters(version: str, macro: MacroInfo) -> None:
    for body in macro.bodies:
        for parameter in body.parameters:
            for type in (parameter.type, parameter.default_type):
                if type is not None:
                    _check_type(version, type, f"parameter {parameter.name!r} of macro {macro.name!r}")


def _check_type(version: str, type: Type, what: str) -> None:
    if type == _SINCE_1_1 and not has_1_1(version):
        raise NotSupportedError(
            f"{what} cannot be {sql_type(type)} in a catalog of format {version}, which programs of that version could "
            "not open any more: use TIMESTAMPTZ, or TIMESTAMP_NS, or make it one of 1.1 with CALL ducklake_migrate"
        )


def check_buckets(old: TableInfo | None, table: TableInfo) -> None:
    """A new partitioning has buckets of such columns only that have some."""
    if table.partitioning is None or (old is not None and old.partitioning == table.partitioning):
        return
    fields = {field.id: field for field in table.schema.fields}
    for key in table.partitioning.fields:
        field = fields[key.field_id]
        if key.transform.startswith("bucket(") and not has_buckets(field.type):
            raise NotSupportedError(
                f"table {table.name!r} cannot be partitioned by bucket of {field.name!r}: it is not defined for "
                f"{sql_type(field.type)}; use another column or transform"
            )
