"""The lexical rules of DuckDB's SQL: text -> tokens with positions.

A scanner of its own, because whatever is decided about a text (parameters, guard, time travel) must see exactly the
literals, comments and identifiers that the engine will see.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lakedbapi.errors import ProgrammingError

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
PARAMETER = "parameter"
OPERATOR = "operator"
END = "end"


class Token(NamedTuple):
    """`text[start:end]` of the scanned text.

    `value` is the unescaped content of an identifier or string, else the text itself. `key` is what keywords and
    operators are compared by: the casefolded text; empty for quoted identifiers, strings and the end.
    """

    kind: str
    value: str
    key: str
    start: int
    end: int

    @property
    def is_identifier(self) -> bool:
        return self.kind in (WORD, QUOTED)


_SPACE = r"\s\u200b-\u200f\ufeff\x00"
_LETTER = rf"[A-Za-z_]|[^\x00-\x7f{_SPACE}]"
_TOKEN = re.compile(
    rf"""
      (?P<space>[{_SPACE}]+)
    | (?P<line_comment>--[^\n\r]*)
    | (?P<block_comment>/\*)
    | (?P<escape_string>[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<string>[xXbBnN]?'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*`)
    | (?P<dollar>\$(?:(?:{_LETTER})(?:{_LETTER}|[0-9])*)?\$)
    | (?P<parameter>[$?][0-9]+(?![0-9._]|[eE][+-]?[0-9]) | \? | \$(?![eExXbBnN]')(?:{_LETTER})(?:{_LETTER}|[0-9])*)
    | (?P<number>\.?[0-9](?:(?<=[0-9])(?:_|\.?[eE][+-]?)[0-9]|[0-9.])*)
    | (?P<word>(?:{_LETTER})(?:{_LETTER}|[0-9$])*)
    | (?P<unterminated>['"`])
    | (?P<operator>::|:=|=>|->>|->|<=|>=|<>|!=|!~~\*|!~~|!~|==|\|\||//|\*\*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def scan(text: str) -> list[Token]:
    """All tokens of `text` without spaces and comments. ProgrammingError where a literal or comment has no end."""
    tokens: list[Token] = []
    append, match_at, position, length = tokens.append, _TOKEN.match, 0, len(text)
    while position < length:
        match = match_at(text, position)
        assert match is not None  # the last alternative takes any character
        kind, start, position = match.lastgroup, position, match.end()
        if kind in _IGNORED:
            continue
        if kind in _PLAIN:
            value = match.group()
            append(Token(_PLAIN[kind], value, value.casefold(), start, position))
        elif kind == "block_comment":
            position = _end_of_comment(text, start)
        elif kind == "dollar":
            content_start, delimiter = position, match.group()
            content_end = text.find(delimiter, content_start)
            if content_end < 0:
                raise error_at(text, start, f"the quote {delimiter} is never closed")
            position = content_end + len(delimiter)
            append(Token(STRING, text[content_start:content_end], "", start, position))
        elif kind == "unterminated":
            raise error_at(text, start, f"the quote {match.group()} is never closed")
        elif kind == "quoted" and "\0" in match.group():
            raise error_at(text, start, "a name cannot contain a NUL character (U+0000)")
        else:
            append(_quoted(kind, match.group(), start, position))
    return tokens


_IGNORED = frozenset(("space", "line_comment"))
_PLAIN = {"word": WORD, "number": NUMBER, "parameter": PARAMETER, "operator": OPERATOR}


def _quoted(kind: str | None, text: str, start: int, end: int) -> Token:
    if kind == "quoted":
        quote = text[0]
        return Token(QUOTED, text[1:-1].replace(quote * 2, quote), "", start, end)
    if kind == "string":
        return Token(STRING, text[text.index("'") + 1 : -1].replace("''", "'"), "", start, end)
    return Token(STRING, _unescape(text[2:-1]), "", start, end)


def _unescape(content: str) -> str:
    return re.sub(
        r"''|\\(.)",
        lambda m: "'" if m.group(1) is None else _ESCAPES.get(m.group(1), m.group(1)),
        content,
        flags=re.DOTALL,
    )


def _end_of_comment(text: str, start: int) -> int:
    """Comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise error_at(text, start, "the comment is never closed")


def split(text: str) -> list[str]:
    """The statements of a script, without the semicolons between them and without empty ones."""
    return [text[part[0].start : part[-1].end] for part in split_tokens(scan(text))]


def split_tokens(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.key != ";":
            part.append(token)
        elif part:
            yield part
            part = []
    if part:
        yield part


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def check_brackets(text: str, tokens: Iterable[Token]) -> None:
    """ProgrammingError where a bracket does not match, so that no part of a statement can reach out of its place."""
    opened: list[Token] = []
    for token in tokens:
        if token.key in _CLOSING:
            opened.append(token)
        elif token.key in _CLOSING.values() and (not opened or token.key != _CLOSING[opened.pop().key]):
            raise error_at(text, token.start, f"syntax error: nothing opens this {token.key}")
    if opened:
        raise error_at(text, opened[-1].start, f"syntax error: this {opened[-1].key} is never closed")


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace `text[start:end]` by `replacement`."""

    start: int
    end: int
    replacement: str


class Canonical:
    """A text after splices, which remembers where its characters come from."""

    def __init__(self, source: str, splices: Sequence[Splice] = (), before: Canonical | None = None) -> None:
        self._before = before
        self.original: str = before.original if before else source
        pieces, position, length = [], 0, 0
        self._starts, self._shifts = [0], [0]
        for splice in sorted(splices, key=lambda s: (s.start, s.end)):
            pieces += [source[position : splice.start], splice.replacement]
            length += splice.start - position + len(splice.replacement)
            position = splice.end
            self._starts.append(length)
            self._shifts.append(position - length)
        pieces.append(source[position:])
        self.text = "".join(pieces)

    def spliced(self, splices: Sequence[Splice]) -> Canonical:
        """This text after further splices."""
        return Canonical(self.text, splices, self) if splices else self

    def original_from(self, start: int) -> str:
        """The original text from offset `start` of this text to the end of the statement."""
        last = [token for token in scan(self.original) if token.key != ";"][-1]
        return self.original[self._original_offset(start) : last.end]

    def error(self, offset: int, message: str) -> ProgrammingError:
        """An error at `offset` of this text, located in the original."""
        return error_at(self.original, self._original_offset(offset), message)

    def _original_offset(self, offset: int) -> int:
        offset += self._shifts[bisect_right(self._starts, offset) - 1]
        return self._before._original_offset(offset) if self._before else offset


def error_at(text: str, offset: int, message: str) -> ProgrammingError:
    offset = min(offset, len(text))
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    return ProgrammingError(f"{message} (line {line}, column {column})", statement=text)
