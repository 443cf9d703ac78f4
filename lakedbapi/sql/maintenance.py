"""Statements that look after tables: CHECKPOINT, OPTIMIZE, REORG, VACUUM, RESTORE, DESCRIBE HISTORY."""

from __future__ import annotations

from sqlglot import exp

from lakedbapi.sql.expressions import expression, has_columns
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.references import travel_point
from lakedbapi.sql.statements import Checkpoint, DescribeHistory, Name, Optimize, Reorg, Restore, Travel, Vacuum
from lakedbapi.sql.tokens import NUMBER, PARAMETER

_UNITS = {"hours": "hours", "hour": "hours", "days": "days", "day": "days"}


def read_checkpoint(reader: Reader) -> Checkpoint:
    """`CHECKPOINT [catalog | [TABLE] t]`."""
    reader.expect("checkpoint")
    checkpoint = Checkpoint() if reader.done else Checkpoint(is_table=reader.accept("table"), name=_table(reader))
    reader.expect_end()
    return checkpoint


def read_optimize(reader: Reader) -> Optimize:
    """`OPTIMIZE [TABLE] t [WHERE condition] [ZORDER BY (column, …)]`."""
    reader.expect("optimize")
    name = _table(reader)
    where = _files(reader, "OPTIMIZE", reader.until(("zorder", "by")))
    order: tuple[str, ...] = ()
    if reader.accept("zorder", "by"):
        order = reader.column_list() if reader.at("(") else _names(reader)
    reader.expect_end()
    return Optimize(name, where, order)


def read_reorg(reader: Reader) -> Reorg:
    """`REORG TABLE t [WHERE condition] APPLY (PURGE)`."""
    reader.expect("reorg")
    reader.expect("table")
    name = reader.name("the name of a table")
    where = _files(reader, "REORG", reader.until(("apply", "(")))
    for word in ("apply", "(", "purge", ")"):
        reader.expect(word)
    reader.expect_end()
    return Reorg(name, where)


def _files(reader: Reader, verb: str, clause: Reader) -> exp.Expression | None:
    """`[WHERE condition]` that tells files apart."""
    if clause.done:
        return None
    clause.expect("where")
    start = clause.peek()
    where = expression(clause.remaining())
    if isinstance(where, exp.Var) or where.find(exp.Query) is not None:
        raise reader.error(f"the condition of {verb} compares columns of the table with constants", start)
    return where


def _names(reader: Reader) -> tuple[str, ...]:
    names = [reader.identifier("the name of a column")]
    while reader.accept(","):
        names.append(reader.identifier("the name of a column"))
    return tuple(names)


def read_vacuum(reader: Reader) -> Vacuum:
    """`VACUUM [[TABLE] t] [RETAIN n HOURS | DAYS] [DRY RUN]`."""
    reader.expect("vacuum")
    name = None if reader.done or _at_retain(reader) or reader.at("dry", "run") else _table(reader)
    age, unit = None, "hours"
    if _at_retain(reader):
        reader.next()
        age = _constant(reader, reader.until(*((word,) for word in _UNITS)), "a number of hours or days")
        if reader.peek().key not in _UNITS:
            raise reader.error("expected HOURS or DAYS")
        unit = _UNITS[reader.next().key]
    dry_run = reader.accept("dry", "run")
    reader.expect_end()
    return Vacuum(name, age, dry_run, unit)


def read_restore(reader: Reader) -> Restore:
    """`RESTORE [TABLE] t TO VERSION | TIMESTAMP AS OF point`."""
    reader.expect("restore")
    name = _table(reader)
    reader.expect("to")
    kind, point = travel_point(reader)
    reader.expect_end()
    return Restore(Travel(name, kind, point))


def read_history(reader: Reader) -> DescribeHistory:
    """`[TABLE] t [LIMIT n]`, behind DESCRIBE HISTORY."""
    name = _table(reader)
    limit = _constant(reader, reader.remaining(), "a number of versions") if reader.accept("limit") else None
    reader.expect_end()
    return DescribeHistory(name, limit)


def _table(reader: Reader) -> Name:
    reader.accept("table")
    return reader.name("the name of a table")


def _at_retain(reader: Reader) -> bool:
    """RETAIN is a name as well where no amount follows."""
    return reader.at("retain") and (reader.peek(1).kind in (NUMBER, PARAMETER) or reader.peek(1).key in ("(", "-"))


def _constant(reader: Reader, value: Reader, what: str) -> exp.Expression:
    start = value.peek() if not value.done else reader.peek()
    if value.done or has_columns(found := expression(value)):
        raise reader.error(f"expected {what}", start)
    return found
