"""MERGE as a SQLAlchemy statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import exc, inspect
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.base import Executable, Generative
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.util import immutabledict

MATCHED = "MATCHED"
NOT_MATCHED = "NOT MATCHED"
NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(ClauseElement):
    """One WHEN clause: `action` is UPDATE, DELETE, INSERT or NOTHING; `values` are (column, value) pairs."""

    __visit_name__ = "lake_merge_action"
    inherit_cache = True

    _traverse_internals = [  # noqa: RUF012 - SQLAlchemy's protocol
        ("when", InternalTraversal.dp_string),
        ("action", InternalTraversal.dp_string),
        ("values", InternalTraversal.dp_clauseelement_tuples),
        ("condition", InternalTraversal.dp_clauseelement),
    ]

    def __init__(
        self, when: str, action: str, values: Sequence[tuple[Any, Any]] = (), condition: Any | None = None
    ) -> None:
        self.when = when
        self.action = action
        self.values = list(values)
        self.condition = condition


# In SQLAlchemy 1.4 Executable is Generative already.
_Statement: Any = Executable if issubclass(Executable, Generative) else type("_Statement", (Executable, Generative), {})


class Merge(_Statement, ClauseElement):
    """`merge(target).using(source, on).when_…()`: the first WHEN clause whose kind and condition fit a row acts on it.

    `rowcount` is the number of rows inserted, updated and deleted.
    """

    __visit_name__ = "lake_merge"
    inherit_cache = True
    # SQLAlchemy 1.4 without `future` commits after the statement by this.
    _execution_options = immutabledict({"autocommit": True})

    _traverse_internals = [  # noqa: RUF012 - SQLAlchemy's protocol
        ("target", InternalTraversal.dp_clauseelement),
        ("source", InternalTraversal.dp_clauseelement),
        ("condition", InternalTraversal.dp_clauseelement),
        ("actions", InternalTraversal.dp_clauseelement_list),
        ("returned", InternalTraversal.dp_clauseelement_list),
        *Executable._executable_traverse_internals,
    ]

    def __init__(self, target: Any) -> None:
        self.target = table_of(target)
        self.source: Any = None
        self.condition: Any = None
        self.actions: list[MergeAction] = []
        self.returned: list[Any] = []

    def using(self, source: Any, on: Any) -> Merge:
        """The rows to merge (a table, mapped class, aliased select or VALUES) and which of them match a target row."""
        changed: Merge = self._generate()
        changed.source = coercions.expect(roles.FromClauseRole, table_of(source))
        changed.condition = coercions.expect(roles.OnClauseRole, on)
        return changed

    def when_matched_update(self, set_: Mapping[Any, Any], where: Any | None = None) -> Merge:
        """Update matched target rows; keys of `set_` are target columns or their names."""
        return self._when(MATCHED, "UPDATE", set_, where)

    def when_matched_delete(self, where: Any | None = None) -> Merge:
        """Delete matched target rows."""
        return self._when(MATCHED, "DELETE", None, where)

    def when_matched_nothing(self, where: Any | None = None) -> Merge:
        """Leave matched rows alone, also by later clauses."""
        return self._when(MATCHED, "NOTHING", None, where)

    def when_not_matched_insert(self, values: Mapping[Any, Any], where: Any | None = None) -> Merge:
        """Insert source rows that match no target row."""
        return self._when(NOT_MATCHED, "INSERT", values, where)

    def when_not_matched_by_source_update(self, set_: Mapping[Any, Any], where: Any | None = None) -> Merge:
        """Update target rows that no source row matches."""
        return self._when(NOT_MATCHED_BY_SOURCE, "UPDATE", set_, where)

    def when_not_matched_by_source_delete(self, where: Any | None = None) -> Merge:
        """Delete target rows that no source row matches."""
        return self._when(NOT_MATCHED_BY_SOURCE, "DELETE", None, where)

    def returning(self, *columns: Any) -> Merge:
        """Return these columns of each row that was inserted, updated or deleted."""
        changed: Merge = self._generate()
        changed.returned = [*self.returned, *(coercions.expect(roles.ColumnsClauseRole, column) for column in columns)]
        return changed

    def _when(self, when: str, action: str, values: Mapping[Any, Any] | None, where: Any | None) -> Merge:
        pairs = [] if values is None else [self._assignment(column, value) for column, value in values.items()]
        if values is not None and not pairs:
            raise exc.ArgumentError(f"WHEN {when} THEN {action} needs at least one value")
        condition = None if where is None else coercions.expect(roles.WhereHavingRole, where)
        changed: Merge = self._generate()
        changed.actions = [*self.actions, MergeAction(when, action, pairs, condition)]
        return changed

    def _assignment(self, column: Any, value: Any) -> tuple[Any, Any]:
        found = self.target.c[column] if isinstance(column, str) else coercions.expect(roles.DMLColumnRole, column)
        found = self.target.c[found] if isinstance(found, str) else found
        return found, coercions.expect(roles.ExpressionElementRole, value, type_=found.type, is_crud=True)


def merge(target: Any) -> Merge:
    """A MERGE into a table or mapped class."""
    return Merge(target)


def table_of(of: Any) -> Any:
    """The table of a mapped class, the selectable of an aliased one; anything else as it is."""
    found: Any = inspect(of, raiseerr=False)
    return (
        getattr(found, "local_table", None) if getattr(found, "is_mapper", False) else getattr(found, "selectable", of)
    )
