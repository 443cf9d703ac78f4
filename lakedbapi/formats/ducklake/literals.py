"""Nested values in DuckDB's text form: `{'a': 1, 'b': 'x'}`, `[1, NULL]`, `{k=v}`."""

from __future__ import annotations

import re
from typing import Any

_CAST = re.compile(r"CAST\(('(?:[^']|'')*') AS [^)]*(?:\([^)]*\))?[^)]*\)", re.IGNORECASE)
_ESCAPES = {("'", "'"), ("\\", "'"), ("\\", "\\")}


def parse_literal(text: str) -> Any:
    """A list, or for structs and maps a list of (key, value); leaves are text or None. ValueError if it is neither."""
    reader = _Reader(text)
    value = reader.value("")
    reader.blanks()
    if reader.position != len(text) or isinstance(value, str):
        raise ValueError(f"not a nested value: {text!r}")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def blanks(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def peek(self) -> str:
        self.blanks()
        if self.position >= len(self.text):
            raise ValueError(f"nested value ends early: {self.text!r}")
        return self.text[self.position]

    def value(self, ends: str) -> Any:
        start = self.peek()
        if start == "[":
            return self.elements()
        if start == "{":
            return self.entries()
        if start == "'":
            return self.quoted()
        return self.word(ends)

    def elements(self) -> list[Any]:
        self.position += 1
        elements: list[Any] = []
        while self.peek() != "]":
            elements.append(self.value(",]"))
            if self.peek() == ",":
                self.position += 1
        self.position += 1
        return elements

    def entries(self) -> list[tuple[Any, Any]]:
        """The inside of a struct (`key: value`) or of a map (`key=value`)."""
        self.position += 1
        entries: list[tuple[Any, Any]] = []
        while self.peek() != "}":
            key = self.value(":=")
            if self.peek() not in ":=":
                raise ValueError(f"no value after {key!r}: {self.text!r}")
            self.position += 1
            entries.append((key, self.value(",}")))
            if self.peek() == ",":
                self.position += 1
        self.position += 1
        return entries

    def quoted(self) -> str:
        r"""A quote inside is written `''` or `\'`; another backslash is itself, unless it is doubled."""
        text, position = self.text, self.position + 1
        parts: list[str] = []
        while position < len(text):
            char = text[position]
            following = text[position + 1 : position + 2]
            if (char, following) in _ESCAPES:
                parts.append(following)
                position += 2
            elif char == "'":
                self.position = position + 1
                return "".join(parts)
            else:
                parts.append(char)
                position += 1
        raise ValueError(f"unclosed quote: {text!r}")

    def word(self, ends: str) -> str | None:
        """Bare text up to one of `ends`, trimmed; NULL in any case is None. Unwraps `CAST('…' AS type)`."""
        cast = _CAST.match(self.text, self.position)
        if cast is not None:
            self.position = cast.end()
            return cast[1][1:-1].replace("''", "'")
        start = self.position
        while self.position < len(self.text) and self.text[self.position] not in ends:
            self.position += 1
        word = self.text[start : self.position].strip()
        return None if word.upper() == "NULL" else word
