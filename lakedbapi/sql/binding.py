"""Parameter values by their canonical names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lakedbapi.errors import ProgrammingError
from lakedbapi.sql.parameters import PLACEHOLDERS
from lakedbapi.sql.statements import Parameters


def bind(parameters: Parameters, values: Sequence[object] | Mapping[str, object] | None) -> dict[str, object]:
    """`values` under the names that the canonical text uses: `1`, `2`, … for a sequence, their own for a mapping.

    A mapping may have more names than the text, if that has any; a sequence must have as many values as the text has
    parameters.
    """
    if parameters.named:
        return _by_name(parameters.named, values)
    if isinstance(values, Mapping) and not values:
        values = None
    if isinstance(values, Mapping) and parameters.positional:
        raise ProgrammingError("the statement has `?` parameters and was given a mapping: give a sequence of values")
    if isinstance(values, (str, bytes)) or not isinstance(values, (Iterable, type(None))):
        raise ProgrammingError(
            f"parameters must be a sequence or a mapping, not a single {type(values).__name__}: write (value,)"
        )
    given = () if values is None else tuple(values)
    if len(given) != parameters.positional:
        hint = "" if parameters.positional else f"; {PLACEHOLDERS}; %s and @name are none"
        raise ProgrammingError(
            f"the statement has {parameters.positional} parameters, {len(given)} values were given{hint}"
        )
    return {str(number): value for number, value in enumerate(given, 1)}


def _by_name(names: Sequence[str], values: Sequence[object] | Mapping[str, object] | None) -> dict[str, object]:
    if not isinstance(values, Mapping):
        raise ProgrammingError(f"the statement has named parameters ({', '.join(names)}): give a mapping of values")
    missing = [name for name in names if name not in values]
    if missing:
        raise ProgrammingError(f"no value was given for parameter {missing[0]!r}")
    return {name: values[name] for name in names}
