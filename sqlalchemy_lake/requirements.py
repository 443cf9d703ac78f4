"""What SQLAlchemy's dialect suite may ask of a lake. Every closed requirement says why."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

from lakedbapi.formats.base import Catalog
from sqlalchemy_lake.reflection import driver_connection

OPEN = (
    *("create_table_as", "comment_reflection", "comment_reflection_full_unicode", "reflect_table_options"),
    *("reflects_pk_names",),
    *("cross_schema_fk_reflection", "foreign_key_constraint_name_reflection", "repeated_column_foreign_keys"),
    *("repeated_remote_col_foreign_keys",),
    *("implicit_default_schema", "default_schema_name_switch", "schema_create_delete", "table_ddl_if_exists"),
    *("array_type", "datetime_timezone"),
    *("datetime_literals", "datetime_historic", "datetime_timezone_historic", "date_historic"),
    *("timestamp_microseconds", "infinity_floats", "precision_numerics_enotation_small", "nvarchar_types"),
    *("precision_numerics_many_significant_digits", "precision_numerics_retains_significant_digits"),
    *("float_or_double_precision_behaves_generically", "boolean_col_expressions", "order_by_collation"),
    *("ctes", "ctes_with_update_delete", "ctes_with_values", "window_functions", "window_range"),
    *("window_range_numeric", "window_range_non_numeric", "intersect", "except_", "tuple_in", "tuple_in_w_empty"),
    *("nullsordering", "regexp_match", "regexp_replace", "supports_distinct_on", "supports_is_distinct_from"),
    *("supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_xor"),
    *("supports_bitwise_shift", "fetch_first", "fetch_no_order_by", "fetch_expression", "table_value_constructor"),
    *("update_from", "delete_from", "aggregate_order_by"),
    *("mod_operator_as_percent_sign", "order_by_label_with_expression", "unicode_ddl", "percent_schema_names"),
    *("isolation_level", "autocommit", "skip_autocommit_rollback", "savepoints", "non_updating_cascade"),
    *("emulated_lastrowid", "dbapi_lastrowid"),
    *("standalone_binds", "precision_numerics_enotation_large"),
)
"""What SQLAlchemy does not expect of every database, and a lake can do."""

NEEDS = {
    "views": ("views", "view_reflection", "view_column_reflection", "create_or_replace_view"),
    "identity_columns": ("autoincrement_insert", "autoincrement_without_sequence"),
}
"""Capabilities of a format, and the requirements that are closed without them."""
PARTS = {
    "JSON": ("json_type", "legacy_unconditional_json_extract"),
    "UUID": ("uuid_data_type",),
    "TIME": ("time", "time_microseconds"),
    "TIMETZ": ("time_timezone",),
    "INTERVAL": ("datetime_interval",),
    "CHECK": ("check_constraint_reflection", "inline_check_constraint_reflection"),
    "DEFAULT": ("server_defaults", "expression_server_defaults"),
}
"""Types and clauses that tables of some formats cannot have, and the requirements that are closed in these."""
MISSING = {
    "delta": ("JSON", "UUID", "TIME", "TIMETZ", "INTERVAL"),
    "iceberg": ("JSON", "TIMETZ", "INTERVAL", "CHECK", "DEFAULT"),
}
"""Iceberg keeps JSON as text, and has defaults in version 3 only, which is not the one of new tables."""

_NO_INDEXES = "a lake has no indexes"
_NO_TEMPORARY = "a lake has no temporary objects: what a transaction makes is private until it commits"
_NO_COMPUTED = "no column is computed from others: a view does that"
_NO_ACTIONS = "foreign keys are not enforced, so they have no actions"
_NO_SEQUENCES = "keys come from identity columns, there are no sequences"
_NO_IDENTITY_OPTIONS = "identity columns count 1, 2, 3 and take any value given: they have no options"
_NO_MATERIALIZED = "no view is materialized: CREATE TABLE AS keeps a result"

CLOSED = {
    "cast_precision_numerics_many_significant_digits": "the engine reads numbers in JSON as doubles",
    "column_collation_reflection": "no lake format keeps the collation of a column",
    "computed_columns": _NO_COMPUTED,
    "computed_columns_default_persisted": _NO_COMPUTED,
    "computed_columns_reflect_persisted": _NO_COMPUTED,
    "computed_columns_stored": _NO_COMPUTED,
    "computed_columns_virtual": _NO_COMPUTED,
    "constraint_comment_reflection": "constraints have no comments",
    "create_temp_table_as": _NO_TEMPORARY,
    "ctes_on_dml": "a CTE holds a query: the engine runs no DML in it",
    "deferrable_fks": "foreign keys are not enforced, so there is nothing to defer",
    "denormalized_names": "names keep their case and are found in any",
    "duplicate_key_raises_integrity_error": "no lake format enforces keys",
    "emulated_lastrowid_even_with_sequences": _NO_SEQUENCES,
    "fetch_offset_with_options": "the engine's LIMIT has no options",
    "fetch_percent": "the engine's FETCH FIRST has no PERCENT",
    "fetch_ties": "the engine's FETCH FIRST has no WITH TIES",
    "fk_constraint_option_reflection_ondelete_noaction": _NO_ACTIONS,
    "fk_constraint_option_reflection_ondelete_restrict": _NO_ACTIONS,
    "fk_constraint_option_reflection_onupdate_restrict": _NO_ACTIONS,
    "foreign_key_constraint_option_reflection_ondelete": _NO_ACTIONS,
    "foreign_key_constraint_option_reflection_onupdate": _NO_ACTIONS,
    "foreign_keys_reflect_as_index": _NO_INDEXES,
    "has_temp_table": _NO_TEMPORARY,
    "identity_columns": _NO_IDENTITY_OPTIONS,
    "identity_columns_standard": _NO_IDENTITY_OPTIONS,
    "index_ddl_if_exists": _NO_INDEXES,
    "index_reflection": _NO_INDEXES,
    "index_reflects_included_columns": _NO_INDEXES,
    "indexes_check_column_order": _NO_INDEXES,
    "indexes_with_ascdesc": _NO_INDEXES,
    "indexes_with_expressions": _NO_INDEXES,
    "insertmanyvalues": "the driver takes any number of rows at once: SQLAlchemy need not write them into the text",
    "json_deserializer_binary": "JSON comes as text",
    "materialized_views": _NO_MATERIALIZED,
    "materialized_views_reflect_pk": _NO_MATERIALIZED,
    "no_lastrowid_support": "the driver has lastrowid",
    "reflect_indexes_with_ascdesc": _NO_INDEXES,
    "reflect_indexes_with_ascdesc_as_expression": _NO_INDEXES,
    "reflect_indexes_with_expressions": _NO_INDEXES,
    "reflect_tables_no_columns": "a table has at least one column",
    "sequences": _NO_SEQUENCES,
    "sequences_optional": _NO_SEQUENCES,
    "temp_table_comment_reflection": _NO_TEMPORARY,
    "temp_table_names": _NO_TEMPORARY,
    "temp_table_reflect_indexes": _NO_TEMPORARY,
    "temp_table_reflection": _NO_TEMPORARY,
    "temporary_tables": _NO_TEMPORARY,
    "temporary_views": _NO_TEMPORARY,
    "two_phase_transactions": "a commit is one atomic step of one catalog",
    "unique_constraints_reflect_as_index": _NO_INDEXES,
    "unique_index_reflect_as_unique_constraints": _NO_INDEXES,
}
"""What a lake cannot do, and why."""


class Requirements(SuiteRequirements):
    """Requirements of a lake, whose format the URL of the suite tells."""

    def get_order_by_collation(self, config: Any) -> str:
        return "NOCASE"

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        return {"default": "SNAPSHOT", "supported": ["SNAPSHOT", "AUTOCOMMIT"]}


def _opened() -> property:
    return property(lambda self: exclusions.open())


def _closed(reason: str) -> property:
    return property(lambda self: exclusions.skip_if(lambda config: True, reason))


@lru_cache
def _catalog(engine: Any) -> Catalog:
    with engine.connect() as connection:
        catalog: Catalog = driver_connection(connection).catalog_view().catalog
        return catalog


def _needing(capability: str) -> property:
    def has(config: Any) -> bool:
        return bool(getattr(_catalog(config.db).capabilities, capability))

    return property(lambda self: exclusions.only_if(has, f"the format has no {capability}"))


def _having(part: str) -> property:
    def has(config: Any) -> bool:
        return part not in MISSING.get(_catalog(config.db).format, ())

    return property(lambda self: exclusions.only_if(has, f"the format has no {part}"))


for _name in OPEN:
    setattr(Requirements, _name, _opened())
for _name, _reason in CLOSED.items():
    setattr(Requirements, _name, _closed(_reason))
for _capability, _names in NEEDS.items():
    for _name in _names:
        setattr(Requirements, _name, _needing(_capability))
for _part, _names in PARTS.items():
    for _name in _names:
        setattr(Requirements, _name, _having(_part))
