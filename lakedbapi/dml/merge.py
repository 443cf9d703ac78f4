"""MERGE: what the clauses of the statement mean in SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from sqlglot import exp

from lakedbapi.context import Context, Counted
from lakedbapi.dml.hidden import revealed
from lakedbapi.dml.merging import (
    DELETE,
    ERROR,
    INSERT,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    PRESENT,
    UPDATE,
    Clause,
    Merging,
)
from lakedbapi.dml.namesakes import told_apart, with_named_source
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning
from lakedbapi.dml.sources import conjunction, named, with_clause
from lakedbapi.dml.target import Target
from lakedbapi.dml.values import assigned, cast, default, field_named, fields_named, given_value, kept, refuse_nan
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.query.prune import prune
from lakedbapi.query.shown import Row
from lakedbapi.sql.expressions import render
from lakedbapi.sql.statements import Merge, MergeAction


def merge(context: Context, statement: Merge) -> Counted:
    """A target row that several source rows want to change is an error; so is one that `THEN ERROR` meets."""
    statement = with_named_source(told_apart(context, statement))
    target = Target.of(context, statement.target, statement.alias)
    target.require("MERGE INTO", target.capabilities.row_changes and target.capabilities.inserts)
    return merging(target, statement).run()


def merging(target: Target, statement: Merge) -> Merging:
    target, statement = revealed(target, statement)
    target = replace(
        target,
        sources=(statement.source,),
        beside={_alias(statement.source).casefold(): Row(None, (PRESENT,))},
    )
    reading = _Reading(target, statement)
    by_source = any(action.when == NOT_MATCHED_BY_SOURCE for action in statement.actions)
    on = reading.on
    return Merging(
        target,
        f"(SELECT *, true AS {PRESENT} FROM {reading.source}) AS {quote_identifier(reading.alias)}",
        target.render(on),
        tuple(reading.clause(action) for action in statement.actions),
        prune(target.context, target.contents, None if by_source else on, target.name).keep,
        reading.base,
        Returning.of(statement, (reading.alias,), hidden=PRESENT),
        NewRows(target),
        bounds=None if by_source else on,
        reads_table=target.is_read_by(
            reading.base.relations,
            [e for e in (*_expressions(statement), statement.source, statement.ctes) if e is not None],
        ),
    )


def _alias(source: exp.Expression) -> str:
    return source.alias_or_name or "_lake_source"


def _expressions(statement: Merge) -> list[exp.Expression | None]:
    """What can name columns of both sides."""
    found = [statement.on]
    for action in statement.actions:
        found += [action.condition, action.error, *(assignment.value for assignment in action.assignments)]
    return found


class _Reading:
    """Turns a statement's clauses into SQL.

    Both sides are visible in every clause; an unqualified name means the target where there is no source row, and the
    source where there is no target row.
    """

    def __init__(self, target: Target, statement: Merge) -> None:
        self._target = target
        self._statement = statement
        source = statement.source
        if not isinstance(source, (exp.Table, exp.Subquery, exp.Values, exp.UDTF)) or source.args.get("joins"):
            raise ProgrammingError(
                f"MERGE INTO {target.table.name} … USING takes one table or subquery: "
                "put a join into a subquery with an alias"
            )
        self.alias = _alias(source)
        self.source = render(source)
        # A statement's USING source and every subquery read the state before the statement.
        identifiers = named(statement, _expressions(statement), [source])
        self.base = target.query(with_clause(statement.ctes), {}, identifiers, statement.specials)

    @property
    def on(self) -> exp.Expression:
        """The join condition."""
        if self._statement.on is not None:
            return self._statement.on
        equalities: list[exp.Expression] = [
            exp.EQ(this=self._qualified(self._target.name, name), expression=self._qualified(self.alias, name))
            for name in self._statement.using
        ]
        return conjunction(equalities)

    def clause(self, action: MergeAction) -> Clause:
        render_side = self._render_for(action.when)
        condition = None if action.condition is None else render_side(action.condition)
        if action.action == UPDATE:
            return Clause(action.when, condition, UPDATE, self._updated(action, render_side))
        if action.action == INSERT:
            return Clause(action.when, condition, INSERT, self._inserted(action, render_side))
        if action.action == DELETE:
            return Clause(action.when, condition, DELETE, self._old())
        error = "NULL" if action.error is None else f"CAST({render_side(action.error)} AS VARCHAR)"
        return Clause(action.when, condition, action.action, error=error if action.action == ERROR else "NULL")

    @cached_property
    def _source_columns(self) -> tuple[str, ...]:
        sql = f"{self.base.sql}SELECT * FROM {self.source} LIMIT 0"
        result = self._target.open(replace(self.base, sql=sql))
        result.close()
        return tuple(column.name for column in result.columns)

    def _old(self) -> dict[str, str]:
        return {field.name: self._target.column(field.name) for field in self._target.fields}

    def _kept(self) -> dict[str, str]:
        return {field.name: kept(self._target, field) for field in self._target.fields}

    def _updated(self, action: MergeAction, render_side: Callable[[exp.Expression], str]) -> dict[str, str]:
        if action.star is None:
            return {**self._kept(), **assigned(self._target, action.assignments, render_side)}
        return {**self._kept(), **self._from_source(action.star)}

    def _inserted(self, action: MergeAction, render_side: Callable[[exp.Expression], str]) -> dict[str, str]:
        fields = self._target.fields
        given: dict[str, str] = {}
        if action.assignments:
            if all(assignment.column for assignment in action.assignments):
                named_fields = fields_named(self._target.table, [a.column[0] for a in action.assignments])
            else:
                named_fields = fields
                self._check_width(len(action.assignments), "VALUES has")
            for field, assignment in zip(named_fields, action.assignments, strict=True):
                if assignment.value is not None:
                    refuse_nan(self._target, assignment.value, field)
                    given[field.name] = given_value(f"({render_side(assignment.value)})", field)
        elif action.star is not None:
            given = self._from_source(action.star)
        return {field.name: given.get(field.name) or default(self._target, field) for field in fields}

    def _from_source(self, star: str) -> dict[str, str]:
        """Values of the target's columns from the source's.

        `*` goes by name when the source has a column for every one of the target, else by position.
        """
        names = self._source_columns
        folded = {name.casefold() for name in names}
        by_name = star == "by name" or (
            star == "*" and all(field.name.casefold() in folded for field in self._target.fields)
        )
        if by_name:
            fields = tuple(
                field_named(self._target.table, name)
                for name in names
                if star == "by name" or self._target.table.schema.get(name) is not None
            )
            names = tuple(name for name in names if self._target.table.schema.get(name) is not None)
        else:
            self._check_width(len(names), "the source has")
            fields = self._target.fields
        return {
            field.name: cast(f"{quote_identifier(self.alias)}.{quote_identifier(name)}", field)
            for field, name in zip(fields, names, strict=True)
            if field.identity is None or not field.identity.always
        }

    def _check_width(self, width: int, what: str) -> None:
        expected = len(self._target.fields)
        if width != expected:
            raise ProgrammingError(
                f"MERGE INTO {self._target.table.name}: the table has {expected} columns but {what} {width}; "
                "list the columns"
            )

    def _render_for(self, when: str) -> Callable[[exp.Expression], str]:
        side = {NOT_MATCHED: self.alias, NOT_MATCHED_BY_SOURCE: self._target.name}.get(when)
        if side is None:
            return self._target.render
        return lambda expression: render_qualified(self._target, expression, side)

    @staticmethod
    def _qualified(table: str, name: str) -> exp.Column:
        return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def render_qualified(target: Target, expression: exp.Expression, table: str) -> str:
    """SQL of `expression` with its unqualified columns, but for those in subqueries and lambdas, qualified by
    `table`."""

    def qualify(node: exp.Expression) -> exp.Expression:
        if (
            isinstance(node, exp.Column)
            and not node.args.get("table")
            and not node.find_ancestor(exp.Query, exp.Lambda)
        ):
            return exp.Column(this=node.this.copy(), table=exp.to_identifier(table, quoted=True))
        return node

    return target.render_shown(target.concealed(expression).transform(qualify))
