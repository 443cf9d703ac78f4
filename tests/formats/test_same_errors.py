"""What is wrong is refused alike on every kind of table: errors of the same class, with what to write instead."""

from __future__ import annotations

import pytest

import lakedbapi
from tests.formats.lake import Lake

ERRORS: list[tuple[str, type[Exception]]] = [
    ("SELEC 1", lakedbapi.ProgrammingError),
    ("SELECT * FROM missing", lakedbapi.ProgrammingError),
    ("SELECT missing FROM t", lakedbapi.ProgrammingError),
    ("INSERT INTO t (missing) VALUES (1)", lakedbapi.ProgrammingError),
    ("INSERT INTO t VALUES (1)", lakedbapi.ProgrammingError),
    ("UPDATE t SET missing = 1", lakedbapi.ProgrammingError),
    ("DELETE FROM missing", lakedbapi.ProgrammingError),
    ("SELECT CAST('x' AS INTEGER)", lakedbapi.DataError),
    ("INSERT INTO t VALUES (99999999999, 'x', 1)", lakedbapi.DataError),
    ("INSERT INTO t VALUES (1, 'x', 'y')", lakedbapi.DataError),
    ("INSERT INTO t VALUES (NULL, 'x', 1)", lakedbapi.IntegrityError),
    ("UPDATE t SET id = NULL", lakedbapi.IntegrityError),
    ("SELECT * FROM read_csv('/etc/passwd')", lakedbapi.ProgrammingError),
    ("COPY t TO '/tmp/x'", lakedbapi.ProgrammingError),
    ("CREATE TABLE t (i INTEGER)", lakedbapi.ProgrammingError),
    ("CREATE TABLE missing.t (i INTEGER)", lakedbapi.ProgrammingError),
    ("CREATE TABLE x (i INTEGER, I VARCHAR)", lakedbapi.ProgrammingError),
    ("ALTER TABLE t ADD COLUMN name INTEGER", lakedbapi.ProgrammingError),
    ("ALTER TABLE t DROP COLUMN missing", lakedbapi.ProgrammingError),
    ("CREATE INDEX i ON t (id)", lakedbapi.ProgrammingError),
    ("SELECT * FROM table_changes('missing', 1, 2)", lakedbapi.ProgrammingError),
    ("ROLLBACK TO SAVEPOINT missing", lakedbapi.ProgrammingError),
    ("SELECT * FROM t FOR VERSION AS OF 100000000000000000000", lakedbapi.ProgrammingError),
    ("SELECT * FROM t FOR TIMESTAMP AS OF 'infinity'", lakedbapi.ProgrammingError),
    ("SELECT * FROM t FOR TIMESTAMP AS OF '20000-01-01'", lakedbapi.ProgrammingError),
]


def test_errors_have_the_same_class(people: Lake) -> None:
    before = people.rows()
    for statement, error in ERRORS:
        with pytest.raises(lakedbapi.Error) as raised:
            people(statement)
        assert type(raised.value) is error, raised.value
        assert raised.value.statement == statement
    assert people.rows() == before


def test_a_list_for_one_value_tells_how_lists_are_compared(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER, name VARCHAR)")
    lake("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    for statement in ("SELECT * FROM t", "DELETE FROM t", "UPDATE t SET id = 3"):
        for condition, values in (("id IN (?)", [1, 2]), ("name IN (?)", ["a"]), ("id = ?", [2]), ("id = ?", [])):
            with pytest.raises(lakedbapi.DataError, match=r"write x IN \? without parentheses, or x = ANY\(\?\)"):
                lake(f"{statement} WHERE {condition}", values)
    assert lake("SELECT id FROM t WHERE name IN ?", ["a", "c"]) == [(1,)]
    assert lake("DELETE FROM t WHERE id = ANY(?)", [2, 7]) == 1
    assert lake.rows() == [(1, "a")]


def test_a_mapping_for_a_statement_without_parameters_is_an_error(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    lake("INSERT INTO t VALUES (1), (2)")
    with pytest.raises(lakedbapi.ProgrammingError, match=r"0 parameters, 1 values were given; .* @name are none"):
        lake.cursor.execute("DELETE FROM t WHERE id = @id", {"id": 1})
    assert lake.rows() == [(1,), (2,)]


def test_locks_are_refused(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    with pytest.raises(lakedbapi.ProgrammingError, match="rows cannot be locked: leave this out"):
        lake("SELECT * FROM t WHERE id = 1 FOR UPDATE")


def test_messages_quote_the_names_that_need_it(lake: Lake) -> None:
    lake.create('CREATE TABLE "my table" (id INTEGER, v VARCHAR)')
    lake.create('CREATE TABLE "order" (id INTEGER)')
    with pytest.raises(lakedbapi.ProgrammingError, match='table "my table" exists already'):
        lake('CREATE TABLE "my table" (id INTEGER)')
    with pytest.raises(lakedbapi.ProgrammingError, match='"no table" does not exist'):
        lake('SELECT * FROM main."no table"')
    with pytest.raises(lakedbapi.NotSupportedError, match='FROM "order" before or after'):
        lake('INSERT INTO "order" VALUES (1) RETURNING rowid')
    if lake.kind.format == "delta":
        with pytest.raises(lakedbapi.NotSupportedError, match='ALTER TABLE "my table" SET'):
            lake('ALTER TABLE "my table" DROP COLUMN v')


def test_a_codec_that_nobody_knows_is_refused_when_it_is_set(lake: Lake) -> None:
    codec = {"iceberg": "write.parquet.compression-codec", "delta": "delta.parquet.compression.codec"}
    names = {codec.get(lake.kind.format, "parquet_compression"), "parquet_compression"}
    for number, name in enumerate(sorted(names)):
        with pytest.raises(lakedbapi.ProgrammingError, match=f"{name}.* cannot be 'nonsense'.*zstd"):
            lake.create("CREATE TABLE u (id INTEGER)", **{name: "nonsense"})
        lake.connection.rollback()
        lake.create(f"CREATE TABLE t{number} (id INTEGER)", **{name: "GZIP"})
        with pytest.raises(lakedbapi.ProgrammingError, match=f"{name}.* cannot be 'nonsense'.*zstd"):
            lake(f"ALTER TABLE t{number} SET ('{name}' = 'nonsense')")
        lake.connection.rollback()
        assert lake(f"INSERT INTO t{number} SELECT i FROM range(100) r(i)") == 100
        lake.commit()
        assert lake(f"SELECT count(*) FROM t{number}") == [(100,)]


def test_a_level_that_is_no_number_is_refused_when_it_is_set(lake: Lake) -> None:
    name = "write.parquet.compression-level" if lake.kind.format == "iceberg" else "parquet_compression_level"
    with pytest.raises(lakedbapi.ProgrammingError, match=f"{name} cannot be 'most': set it to a whole number"):
        lake.create("CREATE TABLE t (id INTEGER)", **{name: "most"})
