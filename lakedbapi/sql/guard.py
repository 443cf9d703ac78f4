"""What a statement may not do by default: reach files, settings, secrets or the environment of the process.

The rules hold on tokens, so that a text that only the engine can parse does not slip by. The engine is locked down as
well; this gives a clear error first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakedbapi.sql.keywords import words
from lakedbapi.sql.relations import relation_starts
from lakedbapi.sql.statements import Parsed
from lakedbapi.sql.tokens import QUOTED, STRING, Token, error_at, scan

REFUSED_STATEMENTS = {
    "copy": "read results from the cursor, or insert with INSERT … SELECT",
    "install": "extensions are the program's business, not a statement's",
    "load": "extensions are the program's business, not a statement's",
    "pragma": "use DESCRIBE, SHOW or information_schema",
    "set": "options are set in connect(), by USE, or by CALL set_option(…)",
    "reset": "options are set in connect()",
    "export": "read the tables with SELECT",
    "import": "insert with INSERT … SELECT",
    "prepare": "use parameters with execute() and executemany()",
    "execute": "use parameters with execute() and executemany()",
    "deallocate": "use parameters with execute() and executemany()",
    "analyze": "statistics are kept with every file that is written",
    "update_extensions": "extensions are the program's business, not a statement's",
    "grant": "access is the storage's and the catalog's business",
    "revoke": "access is the storage's and the catalog's business",
}
"""Statements that never run, each with the way out."""

_REFUSED_FUNCTION = re.compile(
    r"""
      read_\w+ | parquet_\w+ | sniff_csv | glob | st_read\w* | st_drivers | arrow_scan\w* | pandas_scan
    | python_map_function
    | (?:csv|json|parquet|odbc|mssql|iceberg|delta|lance|vortex|avro|bigquery|snowflake|unity|uc)_
      \w*(?:scan|query|execute|attach|metadata|snapshots)\w*
    | (?:postgres|mysql|sqlite|http|httpfs)_\w+
    | load_aws_credentials | write_log | parse_duckdb_log_message | truncate_duckdb_logs
    | getenv | getvariable | current_setting | set_config | which_secret
    | query | query_table | json_execute_serialized_sql | from_substrait\w*
    | pragma_\w+ | duckdb_\w+ | enable_\w+ | disable_\w+ | add_parquet_key | import_database
    """,
    re.VERBOSE,
)
_HARMLESS = words("duckdb_functions duckdb_keywords duckdb_types")
_FILE_NAME = re.compile(
    r"""
      [\\/*?]
    | \.(?:parquet|csv|tsv|txt|json|jsonl|ndjson|geojson|avro|arrow|feather|ipc|orc|xlsx?|vortex|lance
          |db|duckdb|sqlite3?|ducklake|gz|zst|bz2)$
    """,
    re.VERBOSE | re.IGNORECASE,
)


def check(parsed: Parsed, allow_external: bool) -> None:
    """ProgrammingError when the statement reaches outside the attached catalogs and `allow_external` is false."""
    if not allow_external:
        tokens = scan(parsed.text)
        _check_functions(parsed.text, tokens)
        _check_relations(parsed.text, tokens)


def _check_functions(text: str, tokens: Sequence[Token]) -> None:
    for index, token in enumerate(tokens[:-1]):
        if not token.is_identifier or tokens[index + 1].key != "(":
            continue
        name = token.value.casefold()
        if name not in _HARMLESS and _REFUSED_FUNCTION.fullmatch(name) and not _defines(tokens, index):
            way_out = "use information_schema, SHOW or DESCRIBE" if name.startswith(("duckdb_", "pragma_")) else _ALLOW
            raise error_at(
                text,
                token.start,
                f"the function {token.value} is not allowed, it reaches outside the attached catalogs: {way_out}",
            )


def _defines(tokens: Sequence[Token], index: int) -> bool:
    """Whether the name before a parenthesis is that of a table with its columns, as in INSERT INTO checkpoint (a,
    b)."""
    return index > 0 and tokens[index - 1].key in ("into", "table", "view", "references", "exists")


def _check_relations(text: str, tokens: Sequence[Token]) -> None:
    for index in relation_starts(tokens):
        token = tokens[index]
        is_path = token.kind == STRING or (token.kind == QUOTED and _FILE_NAME.search(token.value))
        if is_path:
            raise error_at(
                text,
                token.start,
                f"{text[token.start : token.end]} is a file, and reading files is not allowed: {_ALLOW}",
            )


_ALLOW = "use the attached tables, or connect(…, allow_external=True) in a trusted program"
