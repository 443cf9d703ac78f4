"""`parse`: text -> `Parsed`."""

from __future__ import annotations

from functools import lru_cache

from lakedbapi.errors import Error, ProgrammingError
from lakedbapi.sql.alter import read_alter
from lakedbapi.sql.commands import read_attach, read_call, read_describe, read_detach, read_transaction, read_use
from lakedbapi.sql.ddl import read_comment, read_create, read_drop
from lakedbapi.sql.dml import DML_VERBS, read_dml, read_purge, read_truncate, skip_common_tables
from lakedbapi.sql.guard import REFUSED_STATEMENTS, find_external, find_file_names
from lakedbapi.sql.keywords import QUERY_STARTS, words
from lakedbapi.sql.maintenance import read_checkpoint, read_optimize, read_reorg, read_restore, read_vacuum
from lakedbapi.sql.parameters import find_parameters
from lakedbapi.sql.queries import read_query
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.references import find_specials
from lakedbapi.sql.statements import Explain, Parsed, Special, Statement
from lakedbapi.sql.tokens import Canonical, Splice, Token, check_brackets, error_at, scan, split_tokens

_TRANSACTION_VERBS = words("begin start commit end rollback abort savepoint release")
_DESCRIBE_VERBS = words("describe desc show summarize")
_CACHED_TEXTS = 2048
_LONGEST_CACHED = 100_000


Nested = frozenset[tuple[str, ...]]


def parse(text: str, nested: Nested = frozenset()) -> Parsed:
    """The one statement in `text`. ProgrammingError when there is none, more than one, or it is no SQL of ours.

    `nested` are the (casefolded) names of schemas inside of others, from the outermost on: what begins with them is no
    catalog, schema and table.
    """
    return _cached(text, nested) if len(text) <= _LONGEST_CACHED else _parse(text, nested)


def _parse(text: str, nested: Nested) -> Parsed:
    try:
        return _parse_statement(text, nested)
    except Error as error:
        error.statement = text
        raise


_cached = lru_cache(maxsize=_CACHED_TEXTS)(_parse)


def _parse_statement(text: str, nested: Nested) -> Parsed:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise error_at(text, error.start, f"the statement is no Unicode text: {error.reason}") from error
    statements = list(split_tokens(scan(text)))
    if not statements:
        raise ProgrammingError("the statement is empty")
    if len(statements) > 1:
        raise error_at(text, statements[1][0].start, "there is more than one statement in the text: use executescript")
    tokens = statements[0]
    check_brackets(text, tokens)
    external = find_external(text, tokens)
    file_names = tuple(find_file_names(text, tokens))
    parameters, splices = find_parameters(text, tokens)
    canonical, tokens = _spliced(Canonical(text), splices, tokens)
    specials, splices = find_specials(canonical, tokens, nested)
    canonical, tokens = _spliced(canonical, splices, tokens)
    return Parsed(text, _read_statement(Reader(canonical, tokens), specials), parameters, external, file_names)


def _spliced(before: Canonical, splices: list[Splice], tokens: list[Token]) -> tuple[Canonical, list[Token]]:
    if not splices:
        return before, tokens
    after = before.spliced(splices)
    return after, next(split_tokens(scan(after.text)))


def _read_statement(reader: Reader, specials: tuple[Special, ...]) -> Statement:
    verb = reader.peek().key
    if verb in DML_VERBS or (verb == "with" and _verb_after_with(reader) in DML_VERBS):
        return read_dml(reader, specials)
    if verb in _DESCRIBE_VERBS:
        return read_describe(reader, specials)
    if verb in QUERY_STARTS or verb == "(":
        return read_query(reader, specials)
    if verb == "explain":
        return _read_explain(reader, specials)
    if verb == "create":
        return read_create(reader, specials)
    if verb == "truncate":
        return read_truncate(reader, specials)
    if verb == "purge":
        return read_purge(reader, specials)
    if verb in _TRANSACTION_VERBS:
        return read_transaction(reader)
    simple = {
        "alter": read_alter,
        "drop": read_drop,
        "comment": read_comment,
        "attach": read_attach,
        "detach": read_detach,
        "use": read_use,
        "call": read_call,
        "checkpoint": read_checkpoint,
        "optimize": read_optimize,
        "reorg": read_reorg,
        "vacuum": read_vacuum,
        "restore": read_restore,
    }.get(verb)
    if simple is not None:
        return simple(reader)
    if verb in REFUSED_STATEMENTS:
        raise ProgrammingError(f"{verb.upper()} is not allowed: {REFUSED_STATEMENTS[verb]}")
    raise reader.error("expected a statement")


def _verb_after_with(reader: Reader) -> str:
    ahead = Reader(reader.canonical, reader.tokens)
    skip_common_tables(ahead)
    return ahead.peek().key


def _read_explain(reader: Reader, specials: tuple[Special, ...]) -> Explain:
    reader.expect("explain")
    analyze = reader.accept("analyze")
    return Explain(_read_statement(reader.remaining(), specials), analyze)
