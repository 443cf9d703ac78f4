"""What a lake holds, as plain values: tables by id, their rows by identity, and what a commit makes of two versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from compliance.model.values import Column, StructOf, Value, canonical, shown

Values: TypeAlias = Mapping[int, Value]
"""The values of a row by column id. A column that the row is older than is missing."""


@dataclass(frozen=True)
class Table:
    """`columns[0]` is the key: an integer, never NULL, that no two live rows share.

    `rows` are by identity, which a row gets when it is inserted and keeps. What an open transaction did to the table
    is in the last four: which rows it updated or deleted, whether it inserted some, whether it altered the table, and
    whether it set options, which have no versions.
    """

    id: int
    name: str
    columns: tuple[Column, ...]
    rows: Mapping[int, Values] = field(default_factory=dict)
    partition: tuple[tuple[int, str], ...] = ()
    touched: frozenset[int] = frozenset()
    inserted: bool = False
    altered: bool = False
    configured: bool = False

    @property
    def key(self) -> Column:
        return self.columns[0]

    @property
    def definition(self) -> tuple[object, ...]:
        return self.name, self.columns, self.partition

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def cell(self, row: Values, column: Column) -> Value:
        """As it is kept, with ids of fields."""
        return row.get(column.id, column.initial)

    def shown(self, row: Values, columns: Sequence[Column] | None = None) -> tuple[Value, ...]:
        """As a driver gives it."""
        return tuple(shown(self.cell(row, column), column.type) for column in columns or self.columns)

    def contents(self) -> Counter[Value]:
        return multiset(self.shown(row) for row in self.rows.values())

    def keys(self) -> dict[int, int]:
        """Key -> identity."""
        return {self.cell(row, self.key): identity for identity, row in self.rows.items()}

    def with_rows(self, changed: Mapping[int, Values | None]) -> Table:
        """With rows inserted (new identities), updated and deleted (None)."""
        rows = dict(self.rows)
        for identity, row in changed.items():
            if row is None:
                del rows[identity]
            else:
                rows[identity] = row
        old = {identity for identity in changed if identity in self.rows}
        return replace(self, rows=rows, touched=self.touched | old, inserted=self.inserted or len(old) < len(changed))

    def breaks_not_null(self) -> bool:
        required = [column for column in self.columns if not column.nullable]
        return any(self.cell(row, column) is None for row in self.rows.values() for column in required)

    def as_committed(self) -> Table:
        return replace(self, touched=frozenset(), inserted=False, altered=False, configured=False)

    @property
    def changed(self) -> bool:
        return bool(self.touched or self.inserted or self.altered or self.configured)


Tables: TypeAlias = Mapping[int, Table]
"""By table id."""


def multiset(rows: Iterable[Sequence[Value]]) -> Counter[Value]:
    return Counter(tuple(map(canonical, row)) for row in rows)


class Verdict(Enum):
    """What the documentation promises of a commit."""

    COMMITS = "commits"
    CONFLICTS = "conflicts"
    EITHER = "either"


def rebased(
    base: Tables, mine: Tables, theirs: Tables, since: Sequence[Tables], may_rewrite: Callable[[int], bool]
) -> tuple[Verdict, Tables]:
    """The outcome of committing `mine`, which began on `base`, onto `theirs`.

    `since` are the tables as every commit after `base` left them, with what that commit did to each. `may_rewrite`
    tells whether files of a table may be rewritten for the rows that they lose.
    """
    if not since:
        return Verdict.COMMITS, mine
    verdicts = [Verdict.COMMITS]
    merged: dict[int, Table] = {id: table for id, table in theirs.items() if id not in base}
    for id in base.keys() | mine.keys():
        before, own, other = base.get(id), mine.get(id), theirs.get(id)
        if own is None:
            verdicts.append(_dropping(id, other, since))
        elif before is None:
            merged[id] = own
        elif not own.changed:
            if other is not None:
                merged[id] = other
        elif other is None:
            verdicts.append(Verdict.CONFLICTS)
        else:
            verdict, merged[id] = _merged(before, own, other, since, may_rewrite(id))
            verdicts.append(verdict)
    verdicts.append(_naming(base, mine, theirs))
    found = set(verdicts)
    for verdict in (Verdict.CONFLICTS, Verdict.EITHER):
        if verdict in found:
            return verdict, merged
    return Verdict.COMMITS, merged


def _dropping(id: int, other: Table | None, since: Sequence[Tables]) -> Verdict:
    if other is None:
        return Verdict.CONFLICTS
    return Verdict.EITHER if any(table.changed for table in _versions(id, since)) else Verdict.COMMITS


def _merged(
    before: Table, own: Table, other: Table, since: Sequence[Tables], may_rewrite: bool
) -> tuple[Verdict, Table]:
    versions = list(_versions(own.id, since))
    touched = frozenset[int]().union(*(table.touched for table in versions))
    inserted = any(table.inserted for table in versions)
    altered = any(table.altered for table in versions)
    rows: dict[int, Values] = {
        identity: row for identity, row in other.rows.items() if identity not in own.touched or identity in touched
    }
    for identity, row in own.rows.items():
        if identity in own.touched or identity not in before.rows:
            rows[identity] = row
    merged = replace(
        own if own.altered else other,
        rows=rows,
        touched=own.touched,
        inserted=own.inserted,
        altered=own.altered,
        configured=own.configured,
    )
    if own.altered and altered:
        both = own.definition != before.definition and other.definition != before.definition
        return (Verdict.CONFLICTS if both else Verdict.EITHER), merged
    if touched & own.touched or (altered and other.columns != before.columns and (own.touched or own.inserted)):
        return Verdict.CONFLICTS, merged
    if own.altered and (inserted or touched) and _stricter(before, own):
        return (Verdict.CONFLICTS if inserted else Verdict.EITHER), merged
    configured = own.configured or any(table.configured for table in versions)
    if altered or configured or (touched and own.touched and may_rewrite):
        return Verdict.EITHER, merged
    return Verdict.COMMITS, merged


def _stricter(before: Table, after: Table) -> bool:
    nullable = {column.id for column in before.columns if column.nullable}
    return any(column.id in nullable and not column.nullable for column in after.columns)


def _naming(base: Tables, mine: Tables, theirs: Tables) -> Verdict:
    """Whether a name that was made is still free."""
    made = {table.name: id for id, table in mine.items() if id not in base or base[id].name != table.name}
    for id, table in theirs.items():
        if table.name in made and made[table.name] != id:
            gone = id in base and (id not in mine or mine[id].name != table.name)
            if not gone:
                return Verdict.CONFLICTS
    return Verdict.COMMITS


def _versions(id: int, since: Sequence[Tables]) -> Iterator[Table]:
    return (tables[id] for tables in since if id in tables)


def changes_between(old: Table | None, new: Table, at: Table) -> Iterator[tuple[int, str, tuple[Value, ...]]]:
    """(identity, change type, row in the columns of `at`) of one commit; updates that change nothing are left out."""
    before = {} if old is None else old.rows
    for identity in before.keys() | new.rows.keys():
        was, is_ = before.get(identity), new.rows.get(identity)
        if was is None and is_ is not None:
            yield identity, "insert", at.shown(is_)
        elif is_ is None and was is not None:
            yield identity, "delete", at.shown(was)
        elif was is not None and is_ is not None:
            first, second = at.shown(was), at.shown(is_)
            if canonical(first) != canonical(second):
                yield identity, "update_preimage", first
                yield identity, "update_postimage", second


def edited(columns: tuple[Column, ...], path: Sequence[int], new: Column | None) -> tuple[Column, ...]:
    """`columns` with the one at the path of ids replaced, or without it."""
    result = []
    for column in columns:
        if column.id != path[0]:
            result.append(column)
        elif len(path) > 1:
            assert isinstance(column.type, StructOf)
            result.append(replace(column, type=StructOf(edited(column.type.fields, path[1:], new))))
        elif new is not None:
            result.append(new)
    return tuple(result)
