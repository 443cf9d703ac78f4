"""Relations that are no plain table name: time travel, lake functions, `information_schema`.

Each is replaced in the text by a unique quoted name, so that all the rest of the text stays the engine's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.sql.expressions import expression, has_columns
from lakedbapi.sql.keywords import NOT_AN_ALIAS, words
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.relations import relation_starts
from lakedbapi.sql.statements import Call, Function, InformationSchema, Name, Named, Special, Travel
from lakedbapi.sql.tokens import NUMBER, PARAMETER, QUOTED, STRING, WORD, Canonical, Splice, Token

LAKE_FUNCTIONS = words(
    """
    table_changes table_insertions table_deletions snapshots history files delete_files list_files table_info options
    settings current_snapshot last_committed_snapshot manifests partitions refs
    """
)
"""Table functions that tell of a lake, also with `ducklake_` before their names."""

PROCEDURES = words(
    """
    set_option set_commit_message flush_inlined_data merge_adjacent_files rewrite_data_files expire_snapshots
    cleanup_old_files delete_orphaned_files add_data_files rewrite_manifests rewrite_position_delete_files
    remove_orphan_files
    """
)
"""Table functions that change a lake, also with `ducklake_` before their names."""

PREFIX = "ducklake_"
_NEEDS_QUALIFIER = PROCEDURES | words("list_files table_info options settings current_snapshot last_committed_snapshot")
"""Functions that need a catalog before them, or the prefix, because the bare names are too common."""

_REFS = ("branch_", "tag_")
_WITHOUT_ALIAS = (["table"], ["truncate"], ["describe"], ["desc"])
_VALUES = (NUMBER, STRING, PARAMETER)
_KINDS = {"version": "version", "system_version": "version", "timestamp": "timestamp", "system_time": "timestamp"}


@dataclass(frozen=True)
class Found:
    """A special relation: `name_tokens` is the range of the tokens that name it, `clause` that of its AS OF clause."""

    relation: Travel | Named | Function | InformationSchema
    name_tokens: tuple[int, int]
    clause: tuple[int, int] | None
    alias: str | None
    """The alias to add; None = the user gave one."""


def find_specials(
    canonical: Canonical, tokens: Sequence[Token], nested: Collection[tuple[str, ...]] = ()
) -> tuple[tuple[Special, ...], list[Splice]]:
    """All special relations of a statement, and the splices that put their names in place; see `parse` for `nested`."""
    digest = hashlib.sha1(canonical.text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:10]
    specials: list[Special] = []
    splices: list[Splice] = []
    named: set[tuple[str, ...]] = set()
    for found in _find(canonical, tokens, nested):
        special = Special(f"lake_special_{digest}_{len(specials) + 1}", found.relation)
        specials.append(special)
        replacement = quote_identifier(special.name)
        if found.alias is not None:
            replacement += f" AS {quote_identifier(found.alias)}"
        start, end = found.name_tokens
        splices.append(Splice(tokens[start].start, tokens[end - 1].end, replacement))
        if found.clause is not None:
            splices.append(Splice(tokens[found.clause[0]].start, tokens[found.clause[1] - 1].end, ""))
        if isinstance(found.relation, (Named, Travel)) and found.alias is not None:
            named.add(found.relation.of.parts)
    return tuple(specials), [
        *splices,
        *_unqualified_columns(tokens, splices),
        *(splice for parts in named for splice in _unqualified(tokens, parts, splices)),
    ]


def _find(canonical: Canonical, tokens: Sequence[Token], nested: Collection[tuple[str, ...]]) -> list[Found]:
    found = []
    reader = Reader(canonical, tokens)
    for start in relation_starts(tokens):
        if tokens[start].is_identifier and tokens[start].key not in NOT_AN_ALIAS:
            reader.position = start
            special = _special_at(reader, nested)
            if special is not None:
                found.append(special)
    return found


def _special_at(reader: Reader, nested: Collection[tuple[str, ...]]) -> Found | None:
    start = reader.position
    _skip_path(reader)
    end = reader.position
    parts = tuple(token.value for token in reader.tokens[start:end:2])
    is_target = start > 0 and reader.tokens[start - 1].key in ("into", "table", "update")
    if reader.at("(") and not is_target and _is_lake_function(parts):
        return _function(reader, start, parts)
    if len(parts) in (2, 3) and parts[-2].casefold() == "information_schema":
        has_alias = _alias(reader) is not None
        catalog = parts[0] if len(parts) == 3 else None
        return Found(
            InformationSchema(parts[-1].casefold(), catalog), (start, end), None, None if has_alias else parts[-1]
        )
    if reader.at("@") and reader.peek().start == reader.tokens[end - 1].end:
        _refuse_at_version(reader, ".".join(parts))
    is_nested = len(parts) > 3 or tuple(part.casefold() for part in parts[:-1]) in nested
    return _travel(reader, start, end, Name(parts)) or _ref(reader, start, end, parts, is_nested)


def _skip_path(reader: Reader) -> None:
    """Move behind `a.b.c`."""
    reader.position += 1
    while reader.at(".") and reader.peek(1).is_identifier:
        reader.position += 2


def names_ref(part: str) -> bool:
    """Whether the last part of a name may be that of a branch or tag."""
    return part.casefold().startswith(_REFS)


def _ref(reader: Reader, start: int, end: int, parts: tuple[str, ...], is_nested: bool) -> Found | None:
    """A branch or tag, or a relation in a schema inside of another; where a statement has no place for an alias it is
    left as it is."""
    before = [token.key for token in reader.tokens[max(start - 2, 0) : start]]
    is_plain = before[-1:] == ["into"] and before[:1] != ["merge"]
    is_other = is_nested or (len(parts) > 1 and names_ref(parts[-1]))
    if not is_other or is_plain or before[-1:] in _WITHOUT_ALIAS:
        return None
    reader.position = end
    has_alias = not reader.at("set") and _alias(reader) is not None
    return Found(Named(Name(parts)), (start, end), None, None if has_alias else parts[-1])


def _is_lake_function(parts: tuple[str, ...]) -> bool:
    name = parts[-1].casefold()
    bare = name.removeprefix(PREFIX)
    if bare not in LAKE_FUNCTIONS | PROCEDURES:
        return False
    return len(parts) > 1 or bare != name or bare not in _NEEDS_QUALIFIER


def is_procedure(function: Function | Call) -> bool:
    """Whether calling it changes the lake."""
    name = function.of if isinstance(function, Function) else function.name
    return name.last.casefold().removeprefix(PREFIX) in PROCEDURES


def _function(reader: Reader, start: int, parts: tuple[str, ...]) -> Found | None:
    arguments, named = call_arguments(reader.bracketed())
    end = reader.position
    if reader.at("as", "(") or reader.at("as", "materialized") or reader.at("as", "not", "materialized"):
        return None  # the definition of a common table with column names: WITH files(a, b) AS (…)
    alias = None if _alias(reader) is not None else parts[-1]
    return Found(Function(Name(parts), arguments, named), (start, end), None, alias)


def call_arguments(reader: Reader) -> tuple[tuple[exp.Expression, ...], tuple[tuple[str, exp.Expression], ...]]:
    """Positional and named (`name => value`, `name := value`) arguments."""
    positional, named = [], []
    for item in reader.items():
        if item.peek().is_identifier and item.peek(1).key in ("=>", ":="):
            name = item.next().value.casefold()
            item.next()
            named.append((name, expression(item)))
        elif named:
            raise item.error("a positional argument after a named one")
        else:
            positional.append(expression(item))
    return tuple(positional), tuple(named)


def _travel(reader: Reader, start: int, end: int, of: Name) -> Found | None:
    """A time-travel clause behind the name, with the alias before or after it."""
    alias = None
    kind, clause_start = _travel_kind(reader), reader.position
    if kind is None:
        alias = _alias(reader)
        clause_start = reader.position
        kind = _travel_kind(reader)
    if kind is None:
        for position in (end, clause_start):
            reader.position = position
            _refuse_other_travel(reader, of)
        return None
    value = _travel_value(reader, kind)
    clause_end = reader.position
    if alias is None:
        alias = _alias(reader)
    return Found(
        Travel(of, kind[0], value), (start, end), (clause_start, clause_end), of.last if alias is None else None
    )


def _travel_kind(reader: Reader) -> tuple[str, bool] | None:
    """(`version` or `timestamp`, whether it is `AT (… => value)`) of the clause that starts here; None = there is none.

    Behind `AT` the reader is left where it is, else moved to the value.
    """
    if reader.at("at", "("):
        kind = _KINDS.get(reader.peek(2).key)
        return (kind, True) if kind and reader.peek(3).key == "=>" else None
    ahead = 1 if reader.at("for") else 0
    kind = _KINDS.get(reader.peek(ahead).key)
    is_as_of = reader.peek(ahead + 1).key == "as" and reader.peek(ahead + 2).key == "of"
    if kind and is_as_of and _starts_value(reader.peek(ahead + 3)):
        return kind, False
    return None


def _starts_value(token: Token) -> bool:
    if token.kind == WORD:
        return token.key == "cast" or token.key not in NOT_AN_ALIAS
    return token.kind in _VALUES or token.key in ("(", "-")


def _travel_value(reader: Reader, kind: tuple[str, bool]) -> exp.Expression:
    start = reader.peek()
    if kind[1]:
        reader.position += 1
        content = reader.bracketed()
        content.position = 2
    else:
        reader.position += 4 if reader.at("for") else 3
        first = reader.position
        _skip_value(reader)
        content = reader.part(first, reader.position)
    value = expression(content)
    if has_columns(value):
        raise reader.error(
            "time travel needs a constant: a number, a quoted string, a parameter or an expression without columns",
            start,
        )
    return value


def travel_point(reader: Reader) -> tuple[str, exp.Expression]:
    """The kind and the value of a clause such as `VERSION AS OF 3`, which has to stand here."""
    kind = _travel_kind(reader)
    if kind is None:
        raise reader.error("expected VERSION AS OF or TIMESTAMP AS OF")
    return kind[0], _travel_value(reader, kind)


def _skip_value(reader: Reader) -> None:
    """Move behind an operand and the operators and operands that follow it."""
    _skip_operand(reader)
    while reader.peek().key in ("+", "-", "*", "/", "||"):
        reader.position += 1
        _skip_operand(reader)


def _skip_operand(reader: Reader) -> None:
    reader.accept("-")
    token = reader.next()
    if token.key == "(":
        reader.position -= 1
        reader.bracketed()
    elif token.kind == WORD:
        if token.key == "interval" and reader.peek().kind in (NUMBER, PARAMETER):
            reader.position += 2
        elif reader.at("("):
            reader.bracketed()
            if token.key == "interval":
                reader.position += 1
        elif reader.peek().kind == STRING:
            reader.position += 1
        elif reader.at("with", "time", "zone") and reader.peek(3).kind == STRING:
            reader.position += 4
    elif token.kind not in _VALUES:
        reader.position -= 1
        raise reader.error("expected the version or timestamp to read at")
    while True:
        if reader.accept("::"):
            _skip_type(reader)
        elif reader.at("at", "time", "zone"):
            reader.position += 3
            _skip_operand(reader)
        else:
            return


def _skip_type(reader: Reader) -> None:
    reader.path("a type")
    if reader.at("("):
        reader.bracketed()
    for suffix in (("with", "time", "zone"), ("without", "time", "zone")):
        reader.accept(*suffix)


def _alias(reader: Reader) -> str | None:
    """The alias behind a relation, but for one that begins a time-travel clause."""
    if _travel_kind(reader) is not None:
        return None
    token = reader.peek(1 if reader.at("as") else 0)
    if not token.is_identifier or token.key in NOT_AN_ALIAS or token.key == "at":
        return None
    return reader.alias()


def _refuse_other_travel(reader: Reader, of: Name) -> None:
    """ProgrammingError for what can only be meant as time travel: `AT (VERSION 3)`, `AS OF 3`, `VERSION 3`."""
    ahead = 1 if reader.at("for") else 0
    is_kind = reader.peek(ahead).key in _KINDS
    value = reader.peek(ahead + 1)
    as_of = reader.at("as", "of") and (reader.peek(2).kind in _VALUES or reader.peek(2).key in ("system", *_KINDS))
    if reader.at("at", "(") or as_of or (is_kind and (ahead or value.kind in _VALUES)):
        raise reader.error(
            f"time travel is written {of} FOR VERSION AS OF n, {of} FOR TIMESTAMP AS OF '…' or {of} AT (VERSION => n)"
        )


def _refuse_at_version(reader: Reader, name: str) -> None:
    version = reader.peek(1)
    digits = version.value[1:] if version.kind == WORD and version.key.startswith("v") else version.value
    if digits.isdigit():
        way_out = f"write {name} FOR VERSION AS OF {digits}"
        raise reader.canonical.error(reader.peek().start, f"{name}@{version.value} is no time travel in SQL: {way_out}")


def _unqualified_columns(tokens: Sequence[Token], splices: Sequence[Splice]) -> list[Splice]:
    """`information_schema.tables.table_name` as a column must lose its schema, since the relation is an alias now."""
    replaced = {splice.start for splice in splices}
    return [
        Splice(token.start, tokens[i + 2].start, "")
        for i, token in enumerate(tokens[:-4])
        if token.key == "information_schema"
        and token.start not in replaced
        and (i == 0 or tokens[i - 1].key != ".")
        and tokens[i + 1].key == tokens[i + 3].key == "."
        and all(tokens[i + n].kind in (WORD, QUOTED) or tokens[i + n].key == "*" for n in (2, 4))
    ]


def _unqualified(tokens: Sequence[Token], parts: Sequence[str], splices: Sequence[Splice]) -> list[Splice]:
    """`schema.table.column` must lose what stands before the last part of the relation, which is an alias now."""
    replaced = {splice.start for splice in splices}
    path = [part.casefold() for part in parts]
    width = 2 * len(path)
    return [
        Splice(token.start, tokens[i + width - 2].start, "")
        for i, token in enumerate(tokens[: 1 - width] if width > 1 else ())
        if token.start not in replaced
        and (i == 0 or tokens[i - 1].key != ".")
        and all(tokens[i + n].key == "." for n in range(1, width, 2))
        and [tokens[i + n].value.casefold() for n in range(0, width, 2)] == path
    ]
