"""Which data files a condition can touch, told from partition values and column statistics alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.model.scan import PartitionColumn
from lakedbapi.model.types import Field
from lakedbapi.query.constants import is_constant
from lakedbapi.query.evidence import Evidence, evidence, is_comparable
from lakedbapi.query.folding import Folded, fold
from lakedbapi.query.truth import Mask, Truth
from lakedbapi.transaction import Contents


@dataclass(frozen=True)
class Pruning:
    """One bool a row of `Contents.files`.

    `keep`: some row may satisfy the condition; `all_match`: every row surely does.
    """

    keep: Mask
    all_match: Mask


def prune(context: Context, contents: Contents, predicate: exp.Expression | None, alias: str) -> Pruning:
    """The files of `contents` that rows with `predicate` TRUE can be in.

    `alias` is the name by which columns of the table are qualified in `predicate`; unqualified ones are the table's if
    it has a column of that name. What cannot be decided keeps the file. None = no condition: everything matches.
    """
    return _prune(context, contents, contents.files, predicate, alias)


def matching_files(context: Context, contents: Contents, predicate: exp.Expression, alias: str) -> pa.Table:
    """The files that `prune` keeps, of which a format may have to load less than of all."""
    return contents.files_where(lambda files: _prune(context, contents, files, predicate, alias).keep)


def _prune(
    context: Context, contents: Contents, files: pa.Table, predicate: exp.Expression | None, alias: str
) -> Pruning:
    count = files.num_rows
    if predicate is None or not count:
        return Pruning(np.ones(count, np.bool_), np.ones(count, np.bool_))
    truth = _Reader(context, contents, files, alias).truth(predicate)
    return Pruning(truth.true, ~(truth.false | truth.null))


_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS: Mapping[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


_KNOWN_ARGUMENTS = frozenset({"this", "expression", "expressions", "low", "high", "table", "db", "catalog", "negate"})
"""What a node may have besides comments and types: anything else, such as SYMMETRIC, changes its meaning."""
_BINARY: tuple[Any, ...] = (*_COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.StartsWith)


class _Reader:
    """Turns a condition into its `Truth` over the files of a table."""

    def __init__(self, context: Context, contents: Contents, files: pa.Table, alias: str) -> None:
        self._context = context
        self._contents = contents
        self._files = files
        self._alias = alias.casefold()
        self._count = files.num_rows
        self._evidence: dict[int, Evidence] = {}
        self._constants: dict[int, Folded] = {}
        self._partitions: Mapping[tuple[int, str], PartitionColumn] | None = None

    def truth(self, predicate: exp.Expression) -> Truth:
        atoms = [atom for atom in (self._atom(node) for node in _conditions(predicate)) if atom is not None]
        wanted = {id(constant): (constant, field) for field, constants in atoms for constant in constants}
        folded = fold(self._context, list(wanted.values()))
        self._constants = dict(zip(wanted, folded, strict=True))
        return self._truth(predicate)

    def _truth(self, node: Any) -> Truth:
        if isinstance(node, exp.Paren):
            return self._truth(node.this)
        if isinstance(node, exp.And):
            return self._truth(node.this) & self._truth(node.expression)
        if isinstance(node, exp.Or):
            return self._truth(node.this) | self._truth(node.expression)
        if isinstance(node, exp.Not):
            return ~self._truth(node.this)
        if isinstance(node, exp.Boolean):
            return Truth.always(bool(node.this), self._count)
        if isinstance(node, exp.Null):
            return Truth.always(None, self._count)
        rule = _RULES.get(type(node))
        if rule is None or any(value for name, value in node.args.items() if name not in _KNOWN_ARGUMENTS):
            return Truth.unknown(self._count)
        truth = rule(self, node)
        if truth is None:
            return Truth.unknown(self._count)
        return ~truth if node.args.get("negate") else truth

    def _comparison(self, node: Any) -> Truth | None:
        operator = _COMPARISONS[type(node)]
        field, constant = self._field(node.this), node.expression
        if field is None:
            field, constant, operator = self._field(node.expression), node.this, _FLIPPED[operator]
        return None if field is None else self._compare(field, operator, constant)

    def _compare(self, field: Field, operator: str, constant: Any) -> Truth | None:
        folded = self._constants.get(id(constant))
        if folded is None or folded.value is None:
            return None
        known = self._of(field)
        return known.compare(operator, folded.value, folded.parts(known.parts))

    def _is(self, node: Any) -> Truth | None:
        right = node.expression
        if isinstance(right, exp.Null):
            field = self._field(node.this)
            return None if field is None else self._of(field).is_null()
        if isinstance(right, exp.Boolean):
            truth = self._truth(node.this)
            return (truth if right.this else ~truth).null_as_false()
        return None

    def _null_safe_equal(self, node: Any) -> Truth | None:
        field, constant = self._field(node.this), node.expression
        if field is None:
            field, constant = self._field(node.expression), node.this
        if field is None:
            return None
        folded = self._constants.get(id(constant))
        if folded is not None and folded.value is not None and not folded.value.is_valid:
            return self._of(field).is_null()
        truth = self._compare(field, "=", constant)
        return None if truth is None else truth.null_as_false()

    def _null_safe_distinct(self, node: Any) -> Truth | None:
        equal = self._null_safe_equal(node)
        return None if equal is None else ~equal

    def _in(self, node: Any) -> Truth | None:
        field, items = self._field(node.this), node.expressions
        if field is None or not items:
            return None
        constants = [self._constants.get(id(item)) for item in items]
        values = [folded.value for folded in constants if folded is not None and folded.value is not None]
        if len(values) < len(items) or any(_is_nan(value) for value in values):
            return None
        valid = [value for value in values if value.is_valid]
        if len(valid) == 1 == len(values):
            return self._compare(field, "=", items[0])
        known = self._of(field)
        return known.is_in(pa.array(valid, known.lower.type), with_null=len(valid) < len(values))

    def _between(self, node: Any) -> Truth | None:
        field = self._field(node.this)
        if field is None:
            return None
        lower = self._compare(field, ">=", node.args["low"])
        upper = self._compare(field, "<=", node.args["high"])
        if lower is None or upper is None:
            unknown = Truth.unknown(self._count)
            return (unknown if lower is None else lower) & (unknown if upper is None else upper)
        return lower & upper

    def _like(self, node: Any) -> Truth | None:
        field, folded = self._field(node.this), self._constants.get(id(node.expression))
        if field is None or folded is None or folded.value is None or not pa.types.is_string(folded.value.type):
            return None
        if not folded.value.is_valid:
            return Truth.always(None, self._count)
        pattern = folded.value.as_py()
        if isinstance(node, exp.StartsWith):
            return self._of(field).starts_with(pattern, is_whole=True)
        wildcard = min((pattern.index(mark) for mark in "%_" if mark in pattern), default=None)
        if wildcard is None:
            return self._compare(field, "=", node.expression)
        return self._of(field).starts_with(pattern[:wildcard], is_whole=not pattern[wildcard:].strip("%"))

    def _boolean_column(self, node: Any) -> Truth | None:
        field = self._field(node)
        if field is None:
            return None
        known = self._of(field)
        if not pa.types.is_boolean(known.lower.type):
            return None
        return known.compare("=", pa.scalar(True), {})

    def _field(self, node: Any) -> Field | None:
        """The table's column that `node` is."""
        if isinstance(node, exp.Paren):
            return self._field(node.this)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        if node.table and (node.table.casefold() != self._alias or node.args.get("db")):
            return None
        field = self._contents.table.schema.get(node.name)
        return field if field is not None and is_comparable(field.type) else None

    def _atom(self, node: Any) -> tuple[Field, list[Any]] | None:
        """The column and the constants of a comparison, None when it is none of these."""
        field: Field | None
        constants: list[Any]
        if isinstance(node, exp.In):
            field, constants = self._field(node.this), list(node.expressions)
        elif isinstance(node, exp.Between):
            field, constants = self._field(node.this), [node.args["low"], node.args["high"]]
        elif isinstance(node, _BINARY):
            field, constants = self._field(node.this), [node.expression]
            if field is None:
                field, constants = self._field(node.expression), [node.this]
        else:
            return None
        constants = [constant for constant in constants if is_constant(constant)]
        return (field, constants) if field is not None and constants else None

    def _of(self, field: Field) -> Evidence:
        known = self._evidence.get(field.id)
        if known is None:
            contents = self._contents
            if self._partitions is None:
                self._partitions = contents.snapshot.partition_values(contents.table, self._files)
            partitions = {name: column for (id_, name), column in self._partitions.items() if id_ == field.id}
            bounds = contents.snapshot.bounds(contents.table, self._files, field.id)
            known = self._evidence[field.id] = evidence(field, self._count, bounds, partitions)
        return known


_RULES: Mapping[type, Callable[[_Reader, Any], Truth | None]] = {
    **dict.fromkeys(_COMPARISONS, _Reader._comparison),
    exp.Is: _Reader._is,
    exp.NullSafeEQ: _Reader._null_safe_equal,
    exp.NullSafeNEQ: _Reader._null_safe_distinct,
    exp.In: _Reader._in,
    exp.Between: _Reader._between,
    exp.Like: _Reader._like,
    exp.StartsWith: _Reader._like,
    exp.Column: _Reader._boolean_column,
}


def conjoin(conditions: list[exp.Expression]) -> exp.Expression | None:
    """All of them, as one condition; None for none."""
    return reduce(lambda left, right: exp.And(this=left, expression=right), conditions) if conditions else None


def _conditions(predicate: exp.Expression) -> list[Any]:
    """The nodes below AND, OR, NOT, IS and brackets."""
    found: list[Any] = []
    waiting: list[Any] = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (exp.And, exp.Or)):
            waiting += (node.this, node.expression)
        elif isinstance(node, (exp.Not, exp.Paren, exp.Is)):
            waiting.append(node.this)
        else:
            found.append(node)
    return found


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.is_valid and value.as_py() != value.as_py())
