"""Statements about transactions, catalogs and the session: BEGIN, ATTACH, USE, SHOW, DESCRIBE, CALL and so on."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.sql.keywords import NOT_AN_ALIAS, QUERY_STARTS
from lakedbapi.sql.maintenance import read_history
from lakedbapi.sql.queries import read_query, table_query
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.references import call_arguments
from lakedbapi.sql.statements import (
    Attach,
    Call,
    Describe,
    DescribeHistory,
    Detach,
    Name,
    Show,
    Special,
    TransactionControl,
    Use,
)
from lakedbapi.sql.tokens import END, STRING, Token

_IN = ("from", "in")
_LISTS = {
    "tables": "tables",
    "views": "views",
    "schemas": "schemas",
    "namespaces": "schemas",
    "databases": "databases",
    "catalogs": "databases",
}
_ENDINGS = {"commit": "commit", "end": "commit", "rollback": "rollback", "abort": "rollback"}


_GIVEN_OPTIONS = (
    ("read", "write"),
    *(
        ("isolation", "level", *level.split())
        for level in ("repeatable read", "snapshot", "read committed", "read uncommitted")
    ),
    ("with", "consistent", "snapshot"),
)
"""What a transaction may be asked to be, since every one is that or more."""


def read_transaction(reader: Reader) -> TransactionControl:
    verb = reader.next().key
    control = _transaction(reader, verb)
    reader.expect_end()
    return control


def _transaction(reader: Reader, verb: str) -> TransactionControl:
    if verb in ("begin", "start"):
        if not reader.accept("transaction") and verb == "begin":
            reader.accept("work")
        while not reader.done:
            if not any(reader.accept(*option) for option in _GIVEN_OPTIONS):
                raise NotSupportedError(
                    f"BEGIN does not take {reader.rest}: every transaction reads one snapshot, which is what "
                    "REPEATABLE READ and weaker isolation levels ask for, and may write; "
                    "connect(…, read_only=True) keeps from that"
                )
            reader.accept(",")
        return TransactionControl("begin")
    if verb == "savepoint":
        return TransactionControl("savepoint", reader.identifier("the name of a savepoint"))
    if verb == "release":
        reader.accept("savepoint")
        return TransactionControl("release", reader.identifier("the name of a savepoint"))
    if not reader.accept("transaction"):
        reader.accept("work")
    if verb == "rollback" and reader.accept("to"):
        reader.accept("savepoint")
        return TransactionControl("rollback to", reader.identifier("the name of a savepoint"))
    return TransactionControl(_ENDINGS[verb])


def read_attach(reader: Reader) -> Attach:
    """`ATTACH [DATABASE] [IF NOT EXISTS] 'location' [AS alias] [(OPTION 'value', FLAG, …)]`."""
    reader.expect("attach")
    reader.accept("database")
    if_not_exists = reader.accept("if", "not", "exists")
    location = reader.string("the location as a string literal")
    alias = reader.identifier("an alias") if reader.accept("as") else None
    options = tuple(_option(item) for item in reader.bracketed().items()) if reader.at("(") else ()
    reader.expect_end()
    return Attach(location, alias, options, if_not_exists)


def _option(reader: Reader) -> tuple[str, str]:
    """A flag without a value is true."""
    name = reader.identifier("the name of an option").casefold()
    reader.accept("=")
    value = "true" if reader.done else reader.constant()
    reader.expect_end()
    return name, value


def read_detach(reader: Reader) -> Detach:
    reader.expect("detach")
    reader.accept("database")
    if_exists = reader.accept("if", "exists")
    detach = Detach(reader.identifier("the name of a catalog"), if_exists)
    reader.expect_end()
    return detach


def read_use(reader: Reader) -> Use:
    reader.expect("use")
    use = Use(reader.name("the name of a catalog or schema"))
    reader.expect_end()
    return use


def read_describe(reader: Reader, specials: tuple[Special, ...]) -> Describe | DescribeHistory | Show:
    """DESCRIBE, DESC, SUMMARIZE and SHOW, of a list of things, a table or a query; DESCRIBE HISTORY."""
    verb = reader.next().key
    if verb in ("describe", "desc") and reader.at("history") and _names_table(reader.peek(1)):
        reader.next()
        return read_history(reader)
    if verb != "summarize":
        show = _show(reader, verb)
        if show is not None:
            reader.expect_end()
            return show
        if verb == "show" and reader.peek().key in ("columns", "fields") and reader.peek(1).key in _IN:
            reader.position += 2
    verb = "summarize" if verb == "summarize" else "describe"
    if not reader.at("table") and (reader.at("(") or reader.peek().key in QUERY_STARTS):
        return Describe(verb, read_query(reader, specials))
    reader.accept("table")
    start = reader.position
    name = reader.name("the name of a table")
    tokens = reader.part(start, reader.position)
    reader.alias()
    reader.expect_end()
    return Describe(verb, table_query(tokens.rest, tokens.tokens, specials), name)


def _names_table(token: Token) -> bool:
    return token.key == "table" or (token.is_identifier and token.key not in NOT_AN_ALIAS)


def _show(reader: Reader, verb: str) -> Show | None:
    """The lists are spelled with SHOW; DESCRIBE alone lists all tables."""
    if reader.done:
        return Show("tables" if verb == "show" else "all tables")
    if verb != "show":
        return None
    if reader.accept("create", "table") or reader.accept("create", "view"):
        return Show("create", reader.name("the name of a table"))
    if reader.accept("all", "tables"):
        return Show("all tables")
    if reader.at("tblproperties") and reader.peek(1).is_identifier:
        reader.next()
        return Show("properties", reader.name("the name of a table"))
    what = _LISTS.get(reader.peek().key)
    if what is None or not (reader.peek(1).kind in (END, STRING) or reader.peek(1).key in (*_IN, "like")):
        return None
    reader.next()
    of = _place(reader) if any(map(reader.accept, _IN)) else None
    like = reader.string("a pattern") if reader.accept("like") or reader.peek().kind == STRING else None
    return Show(what, of, like)


def _place(reader: Reader) -> Name:
    if reader.at("schema") and reader.peek(1).is_identifier:
        reader.next()
    return reader.name("the name of a schema")


def read_call(reader: Reader) -> Call:
    reader.expect("call")
    name = reader.name("the name of a procedure")
    arguments, named = call_arguments(reader.bracketed())
    reader.expect_end()
    return Call(name, arguments, named)
