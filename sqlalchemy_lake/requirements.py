"""What SQLAlchemy's dialect suite may ask of a lake. Every closed requirement says why."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_OPEN = """
views view_reflection view_column_reflection comment_reflection comment_reflection_full_unicode json_type uuid_data_type array_type ctes
ctes_with_update_delete ctes_with_values window_functions window_range window_range_numeric window_range_non_numeric
intersect except_ tuple_in tuple_in_w_empty nullsordering regexp_match regexp_replace supports_bitwise_or
supports_bitwise_and supports_bitwise_not supports_bitwise_xor supports_bitwise_shift fetch_first table_value_constructor
update_from delete_from server_defaults expression_server_defaults datetime_timezone time_timezone datetime_literals
datetime_historic datetime_timezone_historic date_historic timestamp_microseconds infinity_floats datetime_interval
precision_numerics_many_significant_digits precision_numerics_retains_significant_digits precision_numerics_enotation_small
isolation_level autocommit skip_autocommit_rollback schema_create_delete
table_ddl_if_exists reflect_table_options boolean_col_expressions unicode_ddl create_table_as create_or_replace_view
percent_schema_names savepoints cross_schema_fk_reflection foreign_key_constraint_name_reflection implicit_default_schema
reflects_pk_names check_constraint_reflection inline_check_constraint_reflection repeated_column_foreign_keys
repeated_remote_col_foreign_keys mod_operator_as_percent_sign supports_distinct_on order_by_label_with_expression
nvarchar_types fetch_no_order_by fetch_expression non_updating_cascade  aggregate_order_by emulated_lastrowid dbapi_lastrowid
supports_is_distinct_from
""".split()
"""Closed by default, open here."""

_CLOSED = {
    "index_reflection": "a lake has no indexes",
    "indexes_with_ascdesc": "a lake has no indexes",
    "reflect_indexes_with_ascdesc": "a lake has no indexes",
    "temporary_tables": "a lake has no temporary tables: all of a transaction's changes are private until it commits",
    "temp_table_reflection": "a lake has no temporary tables",
    "temp_table_reflect_indexes": "a lake has no temporary tables",
    "duplicate_key_raises_integrity_error": "no lake format enforces keys",
}


def _opened(name: str) -> property:
    return property(lambda self: exclusions.open(), doc=name)


def _closed(name: str, reason: str) -> property:
    return property(lambda self: exclusions.closed(reason), doc=f"{name}: {reason}")


class Requirements(SuiteRequirements):
    """Requirements of a lake in DuckLake format."""

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        return {"default": "SNAPSHOT", "supported": ["SNAPSHOT", "AUTOCOMMIT"]}


for _name in _OPEN:
    setattr(Requirements, _name, _opened(_name))
for _name, _reason in _CLOSED.items():
    setattr(Requirements, _name, _closed(_name, _reason))
