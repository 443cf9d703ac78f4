"""What a statement may not do by default: reach files, settings, secrets or the environment of the process.

The rules hold on tokens, so that a text that only the engine can parse does not slip by. The engine is locked down as
well; this gives a clear error first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lakedbapi.errors import ProgrammingError
from lakedbapi.sql.keywords import words
from lakedbapi.sql.relations import relation_starts
from lakedbapi.sql.statements import FileName, Name, Parsed
from lakedbapi.sql.tokens import QUOTED, STRING, Token, error_at, scan

REFUSED_STATEMENTS = {
    "copy": "read results from the cursor, give rows to executemany or adbc_ingest, or insert with INSERT … SELECT",
    "install": "extensions are the program's business, not a statement's",
    "load": "extensions are the program's business, and rows come with INSERT … SELECT, executemany or adbc_ingest",
    "pragma": "use DESCRIBE, SHOW or information_schema",
    "set": "options are set in connect(), by USE, or by CALL set_option(…); every transaction reads one snapshot",
    "reset": "options are set in connect()",
    "export": "read the tables with SELECT",
    "import": "insert with INSERT … SELECT",
    "prepare": "use parameters with execute() and executemany()",
    "execute": "use parameters with execute() and executemany()",
    "deallocate": "use parameters with execute() and executemany()",
    "analyze": "statistics are kept with every file that is written",
    "update_extensions": "extensions are the program's business, not a statement's",
    "lock": "each transaction reads one snapshot, and conflicts are found when it commits",
    "upsert": "use INSERT … ON CONFLICT DO UPDATE, INSERT OR REPLACE or MERGE",
    "refresh": "each transaction reads the newest snapshot",
    "msck": "each transaction reads the newest snapshot",
    "cache": "each transaction reads the newest snapshot",
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
_REFUSED_RELATIONS = words("pg_settings duckdb_logs duckdb_log_contexts")
_HARMLESS = words("duckdb_functions duckdb_keywords duckdb_types")
_FILE_NAME = re.compile(
    r"""
      [\\/*?]
    | \.(?:parquet|csv|tsv|txt|json|jsonl|ndjson|geojson|avro|arrow|feather|ipc|orc|xlsx?|vortex|lance
          |db|duckdb|sqlite3?|ducklake|gz|zst|bz2)$
    """,
    re.VERBOSE | re.IGNORECASE,
)


def is_file_name(name: str) -> bool:
    """Whether the engine takes a relation of that name for a file."""
    return _FILE_NAME.search(name) is not None


def check(parsed: Parsed, allow_external: bool) -> None:
    """ProgrammingError when the statement reaches outside the attached catalogs and `allow_external` is false."""
    if parsed.external is not None and not allow_external:
        raise ProgrammingError(parsed.external, statement=parsed.text)


@lru_cache(maxsize=2048)
def check_stored(text: str, what: str) -> None:
    """ProgrammingError when SQL that the catalog holds, which another program may have written, reaches outside.

    `what` says what it is, such as `the default of column 'a'`.
    """
    tokens = scan(text)
    error = _refused_function(text, tokens) or _refused_relation(text, tokens)
    if error is None:
        error = next((file.error for file in find_file_names(text, tokens)), None)
    if error is not None:
        raise ProgrammingError(f"{what} is not run: {error}")


def find_external(text: str, tokens: Sequence[Token]) -> str | None:
    """The error message for the first thing in `text` that reaches outside; None when there is none."""
    error = _refused_function(text, tokens) or _refused_relation(text, tokens)
    return None if error is None else str(error)


def _refused_function(text: str, tokens: Sequence[Token]) -> ProgrammingError | None:
    for index, token in enumerate(tokens[1:]):
        if token.key != "(" or not tokens[index].is_identifier:
            continue
        name = tokens[index].value.casefold()
        if _REFUSED_FUNCTION.fullmatch(name) and name not in _HARMLESS and not _is_definition(tokens, index):
            is_metadata = name.startswith(("duckdb_", "pragma_"))
            way_out = "use information_schema, SHOW or DESCRIBE" if is_metadata else _ALLOW
            reason = f"the function {name} is not allowed, it reaches outside the attached catalogs"
            return error_at(text, tokens[index].start, f"{reason}: {way_out}")
    return None


def _is_definition(tokens: Sequence[Token], index: int) -> bool:
    """Whether the name before a parenthesis is that of a table with its columns, as in INSERT INTO read_log (a, b)."""
    return index > 0 and tokens[index - 1].key in ("into", "table", "view", "references", "exists")


def _refused_relation(text: str, tokens: Sequence[Token]) -> ProgrammingError | None:
    for index in relation_starts(tokens):
        token = tokens[index]
        if token.kind == STRING:
            return _file_error(text, token)
        last = _last_of_path(tokens, index)
        if last.is_identifier and last.value.casefold() in _REFUSED_RELATIONS:
            reason = f"the relation {last.value} is not allowed, it shows the settings of the process"
            return error_at(text, token.start, f"{reason}: use lake.options() or lake.settings()")
    return None


def find_file_names(text: str, tokens: Sequence[Token]) -> Iterator[FileName]:
    """Quoted names of relations that the engine takes for files where there is no relation of that name."""
    for index in relation_starts(tokens):
        token = tokens[index]
        if token.kind == QUOTED and is_file_name(token.value) and not _is_defined(tokens, index):
            yield FileName(Name(tuple(_path(tokens, index))), _file_error(text, token))


def _is_defined(tokens: Sequence[Token], index: int) -> bool:
    """Whether the name is that of what a statement creates, changes or drops, as in CREATE TABLE "a/b"."""
    before = [token.key for token in tokens[max(0, index - 5) : index]]
    if before[-3:] == ["if", "not", "exists"] or before[-2:] == ["if", "exists"]:
        return True
    return before[-2:] in [[verb, "table"] for verb in ("create", "replace", "drop", "alter", "truncate", "insert")]


def _path(tokens: Sequence[Token], index: int) -> Iterator[str]:
    yield tokens[index].value
    while index + 2 < len(tokens) and tokens[index + 1].key == ".":
        index += 2
        yield tokens[index].value


def _file_error(text: str, token: Token) -> ProgrammingError:
    name = text[token.start : token.end]
    return error_at(text, token.start, f"{name} is a file, and reading files is not allowed: {_ALLOW}")


def _last_of_path(tokens: Sequence[Token], index: int) -> Token:
    """The last part of the name `a.b.c` that begins at `index`."""
    while index + 2 < len(tokens) and tokens[index + 1].key == ".":
        index += 2
    return tokens[index]


_ALLOW = "use the attached tables, or connect(…, allow_external=True) in a trusted program"
