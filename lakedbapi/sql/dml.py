"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE. The structure is read from tokens, expressions and relations by sqlglot."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from lakedbapi.errors import NotSupportedError
from lakedbapi.sql.expressions import common_tables, expression, parse_query, projections, relation, relations
from lakedbapi.sql.keywords import QUERY_STARTS
from lakedbapi.sql.queries import identifiers, read_query
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.statements import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeAction,
    Name,
    Named,
    OnConflict,
    Purge,
    Select,
    Special,
    Truncate,
    Update,
)
from lakedbapi.sql.tokens import Canonical, Splice, Token
from lakedbapi.sql.values import read_plain_values

DML_VERBS = frozenset(("insert", "replace", "update", "delete", "merge"))
_CONFLICTS = (("on", "conflict", "("), ("on", "conflict", "do"), ("on", "conflict", "on"), ("on", "conflict", "where"))
_RETURNING = ("returning",)
_WHERE = ("where",)
_WHENS = (("when", "matched"), ("when", "not", "matched"))


_REPLACE = OnConflict((), (), replace=True)


def read_dml(reader: Reader, specials: tuple[Special, ...]) -> Insert | Update | Delete | Merge:
    """A whole DML statement, with WITH before it or not."""
    ctes = read_common_tables(reader)
    verb = reader.next().key
    if verb == "insert":
        return _insert(reader, specials, ctes, _insert_mode(reader))
    if verb == "replace":
        return _insert(reader, specials, ctes, _REPLACE)
    names = identifiers(reader.tokens)
    if verb == "update":
        return replace(_update(reader, specials), ctes=ctes, identifiers=names, specials=specials)
    if verb == "delete":
        return replace(_delete(reader, specials), ctes=ctes, identifiers=names, specials=specials)
    return replace(_merge(reader, specials), ctes=ctes, identifiers=names, specials=specials)


def read_common_tables(reader: Reader) -> exp.With | None:
    """The WITH clause that a statement may begin with."""
    start = reader.position
    if not skip_common_tables(reader):
        return None
    return common_tables(reader.part(start, reader.position).rest)


def skip_common_tables(reader: Reader) -> bool:
    """Move behind `WITH a(x) AS (…), b AS (…)`; False when there is none."""
    if not reader.accept("with"):
        return False
    reader.accept("recursive")
    while True:
        reader.identifier("the name of a common table")
        reader.skip_to(lambda: reader.at("as"))
        reader.expect("as")
        reader.accept("not")
        reader.accept("materialized")
        if reader.bracketed().peek().key in DML_VERBS:
            raise NotSupportedError("a change in WITH is not supported: run it by itself, with RETURNING for its rows")
        if not reader.accept(","):
            return True


def read_target(reader: Reader, specials: tuple[Special, ...]) -> Name:
    """The name of the table to change, which must be a plain one."""
    token = reader.peek()
    name = reader.name("the name of a table")
    relation = next((special.relation for special in specials if special.name == name.last), None)
    if isinstance(relation, Named):
        return relation.of
    if relation is not None:
        raise reader.canonical.error(
            token.start, "only a table as it is now can be changed: no older version, no metadata"
        )
    return name


def read_truncate(reader: Reader, specials: tuple[Special, ...]) -> Truncate:
    reader.expect("truncate")
    reader.accept("table")
    target = read_target(reader, specials)
    reader.expect_end()
    return Truncate(target)


def read_purge(reader: Reader, specials: tuple[Special, ...]) -> Purge:
    """The condition is not optional: nobody erases a whole table by leaving it out."""
    reader.expect("purge", "from")
    target = read_target(reader, specials)
    alias = reader.alias()
    if not reader.accept("where"):
        raise reader.error("PURGE needs a condition: expected WHERE (WHERE true erases all rows)")
    where = expression(reader.until(("dry", "run")).remaining())
    dry_run = reader.accept("dry", "run")
    reader.expect_end()
    return Purge(target, alias, where, dry_run)


# INSERT


def _insert(reader: Reader, specials: tuple[Special, ...], ctes: exp.With | None, mode: OnConflict | None) -> Insert:
    names = identifiers(reader.tokens)
    if reader.at("overwrite"):
        raise reader.error("INSERT OVERWRITE is not supported: BEGIN, DELETE FROM or TRUNCATE, INSERT INTO, COMMIT")
    reader.expect("into")
    reader.accept("table")
    target = read_target(reader, specials)
    alias = reader.identifier("an alias") if reader.accept("as") else None
    columns = () if _opens_query(reader) or not reader.at("(") else reader.column_list()
    by_name = reader.accept("by", "name")
    if not by_name:
        reader.accept("by", "position")
    body = reader.until(*_CONFLICTS, _RETURNING)
    source, defaults = (
        (None, frozenset[tuple[int, int]]()) if body.accept("default", "values") else _insert_source(body, specials)
    )
    body.expect_end()
    if source is not None:
        source = replace(source, identifiers=names)
    conflict = _conflict(reader) if reader.at("on") else mode
    returning = _returning(reader)
    return Insert(target, alias, columns, source, by_name, defaults, conflict, returning, ctes, names, specials)


def _insert_mode(reader: Reader) -> OnConflict | None:
    if reader.accept("or", "replace"):
        return _REPLACE
    if reader.accept("or", "ignore"):
        return OnConflict((), ())
    return None


def _opens_query(reader: Reader) -> bool:
    return reader.at("(") and reader.peek(1).key in QUERY_STARTS | {"("}


def _insert_source(body: Reader, specials: tuple[Special, ...]) -> tuple[Select, frozenset[tuple[int, int]]]:
    """The query to insert, and the (row, column) pairs of its VALUES items that are DEFAULT, which stand as NULL in
    it."""
    plain = read_plain_values(body.canonical.text, body.tokens) if body.at("values") else None
    defaults = _defaults(body) if plain is None else plain.defaults
    if not defaults and plain is None:
        return read_query(body, specials), frozenset()
    start = body.peek().start
    splices = [Splice(token.start - start, token.end - start, "NULL") for token in defaults.values()]
    text = Canonical(body.remaining_text(), splices).text
    tree = parse_query(text) if plain is None else plain.tree
    return Select(text, identifiers(body.tokens), specials, tree), frozenset(defaults)


def _defaults(body: Reader) -> dict[tuple[int, int], Token]:
    """The DEFAULT items of VALUES by row and column."""
    found: dict[tuple[int, int], Token] = {}
    if body.at("values"):
        rows = body.part(1, len(body.tokens))
        row_number = 0
        while rows.at("("):
            for column_number, item in enumerate(rows.bracketed().items()):
                if len(item.tokens) == 1 and item.at("default"):
                    found[row_number, column_number] = item.peek()
            row_number += 1
            rows.accept(",")
    return found


def _conflict(reader: Reader) -> OnConflict:
    reader.expect("on", "conflict")
    if reader.at("on"):
        raise NotSupportedError("ON CONFLICT ON CONSTRAINT is not supported: name the columns, ON CONFLICT (a, b)")
    columns = reader.column_list() if reader.at("(") else ()
    if reader.at("where"):
        raise NotSupportedError("a condition on the conflict target is not supported: there are no partial indexes")
    reader.expect("do")
    if reader.accept("nothing"):
        return OnConflict(columns, ())
    reader.expect("update", "set")
    update = read_assignments(reader.until(_WHERE, _RETURNING))
    return OnConflict(columns, update, _where(reader))


# UPDATE, DELETE


def _update(reader: Reader, specials: tuple[Special, ...]) -> Update:
    target = read_target(reader, specials)
    alias = reader.alias("set")
    reader.expect("set")
    assignments = read_assignments(reader.until(("from",), _WHERE, _RETURNING))
    source = relations(reader.until(_WHERE, _RETURNING)) if reader.accept("from") else ()
    where = _where(reader)
    return Update(target, alias, assignments, source, where, _returning(reader))


def _delete(reader: Reader, specials: tuple[Special, ...]) -> Delete:
    reader.expect("from")
    target = read_target(reader, specials)
    alias = reader.alias()
    source = relations(reader.until(_WHERE, _RETURNING)) if reader.accept("using") else ()
    where = _where(reader)
    return Delete(target, alias, source, where, _returning(reader))


def _where(reader: Reader) -> exp.Expression | None:
    return expression(reader.until(_RETURNING)) if reader.accept("where") else None


def _returning(reader: Reader) -> tuple[exp.Expression, ...]:
    """The last clause of every DML statement."""
    if not reader.accept("returning"):
        reader.expect_end()
        return ()
    if reader.done:
        raise reader.error("expected what to return")
    return projections(reader.remaining())


def read_assignments(reader: Reader) -> tuple[Assignment, ...]:
    """`a = 1, s.b = DEFAULT, (c, d) = (1, 2)`."""
    if reader.done:
        raise reader.error("expected column = value")
    return tuple(assignment for item in reader.items() for assignment in _assignments(item))


def _assignments(item: Reader) -> tuple[Assignment, ...]:
    if not item.at("("):
        path = item.path("a column name")
        item.expect("=")
        return (Assignment(path, _value(item)),)
    columns = [_column_path(column) for column in item.bracketed().items()]
    item.expect("=")
    item.accept("row")
    start = item.peek()
    if _opens_query(item) and item.peek(1).key != "(":
        raise NotSupportedError(
            "SET (a, b) = (SELECT …) is not supported: use UPDATE … FROM, or a subquery for each column"
        )
    values = [_value(value) for value in item.bracketed().items()]
    item.expect_end()
    if len(values) != len(columns):
        raise item.error(f"{len(columns)} columns but {len(values)} values", start)
    return tuple(Assignment(path, value) for path, value in zip(columns, values, strict=True))


def _column_path(reader: Reader) -> tuple[str, ...]:
    path = reader.path("a column name")
    reader.expect_end()
    return path


def _value(reader: Reader) -> exp.Expression | None:
    """An expression; None for the keyword DEFAULT."""
    if reader.at("default") and reader.position == len(reader.tokens) - 1:
        reader.next()
        return None
    return expression(reader)


# MERGE


def _merge(reader: Reader, specials: tuple[Special, ...]) -> Merge:
    reader.accept("into")
    target = read_target(reader, specials)
    alias = reader.alias()
    reader.expect("using")
    source = relation(_merge_source(reader))
    on: exp.Expression | None = None
    using: tuple[str, ...] = ()
    if reader.accept("on"):
        on = expression(reader.until(*_WHENS, _RETURNING))
    else:
        reader.expect("using")
        using = reader.column_list()
    actions = []
    while reader.accept("when"):
        actions.append(_merge_action(reader))
    if not actions:
        raise reader.error("expected WHEN MATCHED or WHEN NOT MATCHED")
    return Merge(target, alias, source, on, using, tuple(actions), _returning(reader))


def _merge_source(reader: Reader) -> Reader:
    """The tokens of the source and its alias: up to the last ON or USING before the first WHEN, since a join has them
    too."""
    start, last = reader.position, None
    before_when = reader.until(*_WHENS)
    while not before_when.done:
        before_when.until(("on",), ("using", "("))
        if not before_when.done:
            last = start + before_when.position
            before_when.position += 1
    if last is None:
        raise before_when.error("expected USING source ON condition")
    reader.position = last
    return reader.part(start, last)


def _merge_action(reader: Reader) -> MergeAction:
    when = _when(reader)
    condition = expression(reader.until(("then",))) if reader.accept("and") else None
    reader.expect("then")
    if reader.accept("delete"):
        return MergeAction(when, condition, "delete")
    if reader.accept("do", "nothing"):
        return MergeAction(when, condition, "nothing")
    body = reader.until(*_WHENS, _RETURNING)
    if body.accept("error"):
        return MergeAction(when, condition, "error", error=None if body.done else expression(body))
    if body.accept("update"):
        action = _merge_update(body, when, condition)
    elif body.accept("insert"):
        action = _merge_insert(body, when, condition)
    else:
        raise body.error("expected UPDATE, INSERT, DELETE, DO NOTHING or ERROR")
    body.expect_end()
    return action


def _when(reader: Reader) -> str:
    if reader.accept("matched"):
        return "matched"
    reader.expect("not", "matched")
    if reader.accept("by", "source"):
        return "not matched by source"
    reader.accept("by", "target")
    return "not matched"


def _match_columns(reader: Reader) -> str:
    """`*`, `by name` or `by position`: how the columns of an action without a list meet those of the source."""
    reader.accept("*")
    if reader.accept("by", "name"):
        return "by name"
    if reader.accept("by", "position"):
        return "by position"
    return "*"


def _merge_update(reader: Reader, when: str, condition: exp.Expression | None) -> MergeAction:
    if reader.accept("set") and not reader.at("*"):
        return MergeAction(when, condition, "update", read_assignments(reader.remaining()))
    return MergeAction(when, condition, "update", star=_match_columns(reader))


def _merge_insert(reader: Reader, when: str, condition: exp.Expression | None) -> MergeAction:
    if reader.accept("default", "values"):
        return MergeAction(when, condition, "insert")
    columns = reader.column_list() if reader.at("(") else ()
    if not reader.accept("values"):
        if columns:
            raise reader.error("expected VALUES")
        return MergeAction(when, condition, "insert", star=_match_columns(reader))
    start = reader.peek()
    values = [_value(item) for item in reader.bracketed().items()]
    if not columns:
        return MergeAction(
            when, condition, "insert", tuple(Assignment((), value) for value in values), star="by position"
        )
    if len(values) != len(columns):
        raise reader.error(f"{len(columns)} columns but {len(values)} values", start)
    return MergeAction(
        when, condition, "insert", tuple(Assignment((c,), v) for c, v in zip(columns, values, strict=True))
    )
