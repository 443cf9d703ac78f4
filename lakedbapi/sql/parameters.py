"""Parameters: `?` and `:name` become `$1`… and `$name`."""

from __future__ import annotations

from collections.abc import Sequence

from lakedbapi.sql.keywords import BEFORE_OPERAND, OPERATOR_OR_NAME
from lakedbapi.sql.statements import Parameters
from lakedbapi.sql.tokens import NUMBER, PARAMETER, QUOTED, STRING, WORD, Splice, Token, error_at

PLACEHOLDERS = "write ? for each value of a sequence, :name for those of a mapping"


def find_parameters(text: str, tokens: Sequence[Token]) -> tuple[Parameters, list[Splice]]:
    """The parameters of `text`, and the splices that give them DuckDB's spelling."""
    splices = []
    marks = 0
    numbers: set[int] = set()
    names: dict[str, None] = {}
    for index, token in enumerate(tokens):
        if token.kind == PARAMETER and token.value == "?":
            marks += 1
            splices.append(Splice(token.start, token.end, f"${marks}"))
        elif token.kind == PARAMETER and token.value[0] == "?":
            numbers.add(int(token.value[1:]))
            splices.append(Splice(token.start, token.start + 1, "$"))
        elif token.kind == PARAMETER and token.value[1:].isascii() and token.value[1:].isdigit():
            numbers.add(int(token.value[1:]))
        elif token.kind == PARAMETER:
            names[token.value[1:]] = None
        elif token.key == "%" and _is_percent_placeholder(tokens, index):
            raise error_at(text, token.start, f"%s and %(name)s are no parameters here: {PLACEHOLDERS}")
        elif token.key == ":" and _is_colon_parameter(tokens, index):
            names[tokens[index + 1].value] = None
            splices.append(Splice(token.start, token.end, "$"))
    if sum(map(bool, (marks, numbers, names))) > 1:
        raise error_at(text, 0, "parameters of different styles in one statement: use either ?, or $1, or :name")
    by_folded = {name.casefold(): name for name in names}
    for name in names:
        if by_folded[name.casefold()] != name:
            raise error_at(
                text, 0, f"parameters {name!r} and {by_folded[name.casefold()]!r} differ only in case: rename one"
            )
    return Parameters(max(numbers, default=marks), tuple(names)), splices


def _is_colon_parameter(tokens: Sequence[Token], index: int) -> bool:
    """Whether `:` starts a parameter, as opposed to a bound of a slice, or the end of a struct key, prefix alias or
    lambda head."""
    colon = tokens[index]
    if index + 1 == len(tokens) or tokens[index + 1].kind != WORD or tokens[index + 1].start != colon.end:
        return False
    if index == 0:
        return True
    before = tokens[index - 1]
    if before.key == "[":
        is_subscript = index > 1 and ends_operand(tokens[index - 2])
        return not is_subscript
    if before.key in OPERATOR_OR_NAME and before.end == colon.start:
        return False
    return not ends_operand(before)


def _is_percent_placeholder(tokens: Sequence[Token], index: int) -> bool:
    """Whether `%` stands where an operand has to, as in `= %s` and `(%(name)s, …`, and so divides nothing."""
    after = [token.key for token in tokens[index + 1 : index + 5]]
    is_placeholder = after[:1] == ["s"] or (after[:1] == ["("] and after[2:4] == [")", "s"])
    return is_placeholder and (index == 0 or not ends_operand(tokens[index - 1]))


def ends_operand(token: Token) -> bool:
    """Whether an operand can end with `token`, so that an operator must follow."""
    if token.kind == WORD:
        return token.key not in BEFORE_OPERAND
    return token.kind in (QUOTED, STRING, NUMBER, PARAMETER) or token.key in (")", "]", "}")
