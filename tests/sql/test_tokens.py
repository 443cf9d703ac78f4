from __future__ import annotations

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakedbapi import ProgrammingError
from lakedbapi.sql import split
from lakedbapi.sql.tokens import STRING, Canonical, Splice, scan


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.value) for token in scan(text)]


def test_literals_and_identifiers_are_unescaped() -> None:
    assert kinds("""'it''s' "q""q" e'a\\'b\\n' $$x'y$$ $t$ $$ $t$ `b``q`""") == [
        ("string", "it's"),
        ("quoted", 'q"q'),
        ("string", "a'b\n"),
        ("string", "x'y"),
        ("string", " $$ "),
        ("quoted", "b`q"),
    ]


def test_comments_nest_and_end_at_the_line() -> None:
    assert kinds("a /* /* ' */ \" */ b -- 'c'\nd --e\rf") == [
        ("word", "a"),
        ("word", "b"),
        ("word", "d"),
        ("word", "f"),
    ]


def test_parameters_casts_and_numbers_are_told_apart() -> None:
    assert [value for _, value in kinds("?$1 $n::int :x ?2 1_0.5e-3 .5 a->>'b' x:=1 5.e1")] == (
        ["?", "$1", "$n", "::", "int", ":", "x", "?2", "1_0.5e-3", ".5", "a", "->>", "b", "x", ":=", "1", "5.e1"]
    )


def test_positions_point_into_the_text() -> None:
    text = "select  'é' AS \"ü\" -- c"
    assert [text[t.start : t.end] for t in scan(text)] == ["select", "'é'", "AS", '"ü"']


@pytest.mark.parametrize("text", ["select 'a", 'select "a', "select /* /* */", "select $$a", "select $t$ a $$"])
def test_open_quote_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"never closed \(line 1, column 8\)"):
        scan(text)


@pytest.mark.parametrize("text", ['select "a\0b"', "select `\0`"])
def test_a_name_with_a_null_character_is_refused(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"cannot contain a NUL character .* \(line 1, column 8\)"):
        scan(text)
    assert [token.value for token in scan("'a\0b'")] == ["a\0b"]


def test_script_is_split_outside_literals_and_comments() -> None:
    assert split("a; 'b;' ;; /* ; */ c -- ;\n ; $$;$$;\n") == ["a", "'b;'", "c", "$$;$$"]
    assert split(" -- nothing\n;") == []


def test_error_in_a_spliced_text_is_located_in_the_original() -> None:
    original = "select ?,\n ? from"
    canonical = Canonical(original, [Splice(7, 8, "$1"), Splice(11, 12, "$2")])
    again = canonical.spliced([Splice(0, 6, "SELECT DISTINCT")])
    assert canonical.text == "select $1,\n $2 from"
    offset = again.text.index("from")
    assert str(again.error(offset, "here")) == "here (line 2, column 4)"


PIECES = [
    *(
        "'a'",
        "'it''s'",
        '"q"',
        '"a""b"',
        "$$ x ? $$",
        "$t$ y $$ $t$",
        "-- c\n",
        "/* c */",
        "/* /* n */ */",
        "?",
        "$1",
        "$n",
    ),
    *(
        ":x",
        "::int",
        "a",
        "b1",
        "from",
        "1",
        "1.5",
        ".5",
        "1e5",
        "e'\\''",
        "E'a''b\\\\'",
        "x'ab'",
        "b'01'",
        "(",
        ")",
        "[",
        "]",
    ),
    *(
        ",",
        ".",
        ";",
        "+",
        "-",
        "*",
        "/",
        "->",
        "=>",
        ":=",
        "@",
        "é",
        " ",
        "\n",
        "$",
        "!",
        "~",
        "--x\r",
        "'",
        '"',
        "/*",
        "*/",
    ),
]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="the tokenizer of DuckDB 1 is another one than its parser's")
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@example("1e51e5E'a''b\\\\'")
@example("1.5.5e5e+5e'a'")
@example("1_0_e'a'")
def test_strings_begin_where_they_do_for_the_engine(text: str) -> None:
    try:
        ours = {len(text[: token.start].encode()) for token in scan(text) if token.kind == STRING}
    except ProgrammingError:
        return
    assert ours == {start for start, kind in duckdb.tokenize(text) if kind == duckdb.token_type.string_const}
