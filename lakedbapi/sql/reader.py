"""`Reader`: a cursor over the tokens of one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.sql_types import RESERVED
from lakedbapi.sql.keywords import NOT_AN_ALIAS
from lakedbapi.sql.statements import Name
from lakedbapi.sql.tokens import END, NUMBER, STRING, WORD, Canonical, Token

_CLOSING = {"(": ")", "[": "]", "{": "}", "case": "end"}


def _opens_type(tokens: Sequence[Token]) -> bool:
    """Whether a `<` behind ARRAY, MAP or STRUCT has no `>` yet."""
    depth = 0
    for before, token in pairwise(tokens):
        depth += token.key == "<" and before.key in ("array", "map", "struct")
        depth -= depth > 0 and token.key == ">"
    return depth > 0


class Reader:
    """Reads `tokens` of `canonical.text` from left to right. `position` is the index of the next token."""

    def __init__(self, canonical: Canonical, tokens: Sequence[Token]) -> None:
        self.canonical = canonical
        self.tokens = tokens
        self.position = 0
        end = tokens[-1].end if tokens else 0
        self._end = Token(END, "", "", end, end)

    def part(self, start: int, end: int) -> Reader:
        """A reader of the tokens `start` to `end` (exclusive)."""
        return Reader(self.canonical, self.tokens[start:end])

    @property
    def done(self) -> bool:
        return self.position >= len(self.tokens)

    def peek(self, ahead: int = 0) -> Token:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else self._end

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def at(self, *keys: str) -> bool:
        """Whether the next tokens are these keywords or operators."""
        return all(self.peek(i).key == key for i, key in enumerate(keys))

    def accept(self, *keys: str) -> bool:
        if not self.at(*keys):
            return False
        self.position += len(keys)
        return True

    def expect(self, *keys: str) -> None:
        if not self.accept(*keys):
            raise self.error(f"expected {' '.join(keys).upper()}")

    def expect_end(self) -> None:
        if not self.done:
            raise self.error("the statement should end here")

    def error(self, message: str, token: Token | None = None) -> ProgrammingError:
        """`message` with the offending token and its place."""
        token = token or self.peek()
        found = self.canonical.text[token.start : token.end]
        return self.canonical.error(
            token.start, f"syntax error: {message}, found {found}" if found else f"syntax error: {message}"
        )

    def identifier(self, what: str = "a name") -> str:
        """The next token as a name. Words that are reserved must be quoted."""
        token = self.peek()
        if not token.is_identifier or token.key in RESERVED:
            raise self.error(f"expected {what}")
        self.position += 1
        return token.value

    def path(self, what: str = "a name") -> tuple[str, ...]:
        """Identifiers separated by dots; after a dot any word may stand."""
        parts = [self.identifier(what)]
        while self.accept("."):
            token = self.next()
            if not token.is_identifier:
                self.position -= 1
                raise self.error(f"expected {what}")
            parts.append(token.value)
        return tuple(parts)

    def name(self, what: str = "a name") -> Name:
        return Name(self.path(what))

    def alias(self, *stops: str) -> str | None:
        """`[AS] alias`, unless the next word is one of `stops` or continues the clause."""
        if self.accept("as"):
            return self.identifier("an alias")
        token = self.peek()
        if token.is_identifier and token.key not in NOT_AN_ALIAS and token.key not in stops:
            self.position += 1
            return token.value
        return None

    def string(self, what: str = "a string literal") -> str:
        token = self.peek()
        if token.kind != STRING:
            raise self.error(f"expected {what}")
        self.position += 1
        return token.value

    def constant(self) -> str:
        """A string, number or word as text."""
        sign = "-" if self.accept("-") else ""
        token = self.next()
        if token.kind not in (STRING, NUMBER, WORD) or (sign and token.kind != NUMBER):
            self.position -= 1
            raise self.error("expected a value")
        return sign + token.value

    def column_list(self) -> tuple[str, ...]:
        """`(a, b)`."""
        self.expect("(")
        names = [self.identifier("a column name")]
        while self.accept(","):
            names.append(self.identifier("a column name"))
        self.expect(")")
        return tuple(names)

    def bracketed(self) -> Reader:
        """A reader of what stands in the parentheses that follow; moves behind them."""
        self.expect("(")
        start = self.position
        self.skip_to(lambda: self.at(")"))
        self.position += 1
        return self.part(start, self.position - 1)

    def angled(self) -> Reader:
        """A reader of what stands between Spark's `<` and `>` around types; moves behind them."""
        self.expect("<")
        start, depth = self.position, 1
        while not self.done:
            depth += {"<": 1, ">": -1}.get(self.next().key, 0)
            if not depth:
                return self.part(start, self.position - 1)
        raise self.error("expected >")

    def until(self, *stops: tuple[str, ...]) -> Reader:
        """A reader of the tokens before the next of `stops` (sequences of keywords) outside brackets and CASE, or
        before the end."""
        start = self.position
        self.skip_to(lambda: any(self.at(*stop) for stop in stops))
        return self.part(start, self.position)

    def skip_to(self, found: Callable[[], bool]) -> None:
        """Move to the next token where `found` holds, outside brackets and CASE, or to the end."""
        expected: list[str] = []
        while not self.done and (expected or not found()):
            key, after_dot = self.peek().key, self.position > 0 and self.tokens[self.position - 1].key == "."
            if key in _CLOSING and not after_dot:
                expected.append(_CLOSING[key])
            elif expected and key == expected[-1]:
                expected.pop()
            self.position += 1
        if expected:
            raise self.error(f"expected {expected[-1].upper()}")

    def items(self, *, typed: bool = False) -> Iterator[Reader]:
        """The parts between the commas, up to the end; `typed`: a comma in Spark's MAP<a, b> does not separate any."""
        while not self.done:
            start, item = self.position, self.until((",",))
            while typed and not self.done and _opens_type(item.tokens):
                self.position += 1
                self.until((",",))
                item = self.part(start, self.position)
            if item.done:
                raise self.error("expected an item")
            yield item
            if self.accept(",") and self.done:
                raise self.error("expected an item")

    @property
    def rest(self) -> str:
        """The text from the next token to the end."""
        return "" if self.done else self.canonical.text[self.peek().start : self.tokens[-1].end]

    def remaining_text(self) -> str:
        """`rest`; this reader is at its end then."""
        text = self.rest
        self.position = len(self.tokens)
        return text

    def remaining(self) -> Reader:
        """A reader of all that is left; this one is at its end then."""
        rest = self.part(self.position, len(self.tokens))
        self.position = len(self.tokens)
        return rest
