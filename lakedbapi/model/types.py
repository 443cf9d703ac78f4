"""Column types, independent of any table format and engine."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Union

SCALARS = frozenset(
    "boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64 "
    "date time time_ns timetz timestamp timestamp_s timestamp_ms timestamp_ns timestamptz timestamptz_ns "
    "interval varchar json blob uuid variant geometry".split()
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parameters; `name` is one of `SCALARS`."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class List:
    element: Field


@dataclass(frozen=True, slots=True)
class Map:
    key: Field
    value: Field


Type = Union[Scalar, Decimal, Struct, List, Map]


@dataclass(frozen=True, slots=True)
class Identity:
    """A column whose values are counted: `start`, then `step` further each time. `always`: rows cannot bring values."""

    start: int = 1
    step: int = 1
    always: bool = False

    @property
    def generation(self) -> str:
        """`ALWAYS` or `BY DEFAULT`, as in GENERATED … AS IDENTITY."""
        return "ALWAYS" if self.always else "BY DEFAULT"

    def after(self, value: int) -> int:
        """The first counted value beyond `value`, in the direction of counting."""
        steps = max((value - self.start) // self.step + 1, 0)
        return self.start + steps * self.step

    @property
    def options(self) -> str:
        """What stands in the parentheses after IDENTITY."""
        return f"START WITH {self.start} INCREMENT BY {self.step}"


UNASSIGNED = 0
"""Field id of a field that no catalog has numbered yet."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table, or a field of a struct, list (`element`) or map (`key`, `value`).

    `id` is the field id that data files are matched by. `default` is the SQL expression for new rows, None = no
    default. `initial_default` is the value, as text to be cast to `type`, of rows in files that lack the field;
    None = NULL. `identity` is that of a column GENERATED … AS IDENTITY.
    """

    name: str
    type: Type
    id: int = UNASSIGNED
    nullable: bool = True
    default: str | None = None
    initial_default: str | None = None
    comment: str | None = None
    identity: Identity | None = None
    generated: str | None = None
    """SQL over the other columns of the row that the value always has."""


_ASCII_CASE = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
_FORMS: tuple[Callable[[str], str], ...] = (str, lambda name: name.translate(_ASCII_CASE), str.casefold)
"""What makes two names the same column, the strictest first."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table at one version, in column order. Names compare case-insensitively.

    Other programs make tables with columns that only `str.casefold` takes for the same: DuckDB ignores the case of
    ASCII letters alone, Spark that of others, but has `straße` beside `STRASSE`. The nearest name is meant then.
    """

    fields: tuple[Field, ...]
    _by_name: dict[str, Field] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        by_name = {form(f.name): f for form in reversed(_FORMS) for f in reversed(self.fields)}
        object.__setattr__(self, "_by_name", by_name)

    def get(self, name: str) -> Field | None:
        return next((found for form in _FORMS if (found := self._by_name.get(form(name))) is not None), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)


def children(type: Type) -> tuple[Field, ...]:
    """The fields in a type: those of a struct, the element of a list, key and value of a map."""
    if isinstance(type, Struct):
        return type.fields
    if isinstance(type, List):
        return (type.element,)
    return (type.key, type.value) if isinstance(type, Map) else ()


def walk(fields: Iterable[Field]) -> Iterator[Field]:
    """The fields and those in them, depth first."""
    for each in fields:
        yield each
        yield from walk(children(each.type))
