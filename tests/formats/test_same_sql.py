"""One SQL for all formats: the same statements give the same rows, row counts and errors on every kind of table.

What a format lacks is refused by name; `docs/formats.md` has the list.
"""

from __future__ import annotations

import datetime
import decimal
from contextlib import nullcontext

import pytest

import lakedbapi
from lakedbapi import OperationalError
from lakedbapi.dml import new_rows
from lakedbapi.model.catalog import TableInfo
from lakedbapi.transaction import CatalogView, Contents
from tests.formats.kinds import Kind, Rows, capabilities
from tests.formats.lake import Lake


def D(value: str) -> decimal.Decimal:
    return decimal.Decimal(value)


# Rows


def test_insert(people: Lake) -> None:
    assert people("INSERT INTO t SELECT id, 'new', amount FROM news WHERE id IS NOT NULL") == 4
    assert people("INSERT INTO t BY NAME SELECT 2.5 AS amount, 9 AS id") == 1
    assert people("INSERT INTO t (id) VALUES (?)", 10) == 1
    assert people.many("INSERT INTO t VALUES (?, ?, ?)", [(20 + i, f"n{i}", i) for i in range(100)]) == 100
    people.commit()
    assert people("SELECT count(*), sum(amount) FROM t") == [(111, D("5106.00"))]
    assert people("SELECT * FROM t WHERE id IN (9, 10) ORDER BY id") == [(9, None, D("2.50")), (10, None, None)]
    assert people("INSERT INTO t SELECT * FROM t WHERE id < 0") == 0


def test_partition_values_may_be_longer_than_names_of_folders(lake: Lake) -> None:
    long = ["x" * 300, "Ü" * 50, "x" * 300 + "y"]
    lake.create("CREATE TABLE t (id INTEGER, k VARCHAR) PARTITIONED BY (k)")
    assert lake.many("INSERT INTO t VALUES (?, ?)", [(i, long[i % 3]) for i in range(60)]) == 60
    lake("INSERT INTO t VALUES (100, ?)", long[0])
    lake.commit()
    lake("INSERT INTO t SELECT id + 200, k FROM t")
    lake.commit()
    assert lake("UPDATE t SET id = id + 1000 WHERE k = ?", long[1]) == 40
    assert lake("DELETE FROM t WHERE k = ?", long[2]) == 40
    lake.commit()
    assert lake("SELECT k, count(*), min(id) FROM t GROUP BY k ORDER BY k") == [(long[0], 42, 0), (long[1], 40, 1001)]


def test_a_stream_of_such_rows_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_rows, "MEMORY_LIMIT", 1)
    lake.create("CREATE TABLE t (id INTEGER, k VARCHAR) PARTITIONED BY (k)")
    lake("INSERT INTO t VALUES (0, 'k')")
    lake.commit()
    long = "INSERT INTO t SELECT i, repeat('x', 300) FROM range(10) r(i)"
    streamed = pytest.raises(OperationalError, match="too long for the name of a folder")
    with nullcontext() if lake.kind.name.startswith("iceberg") else streamed:
        lake(long)
    lake.commit()
    assert lake("SELECT count(*) FROM t WHERE k = 'k'") == [(1,)]


def test_delete(people: Lake) -> None:
    assert people("DELETE FROM t WHERE amount > 4") == 1  # NULL is not true
    assert people("DELETE FROM t USING news WHERE t.id = news.id") == 2  # 3 twice in news, deleted once
    assert people("DELETE FROM t WHERE name = 'Nobody'") == 0
    people.commit()
    assert people.rows() == [(2, "Bob", None), (4, "Dan", D("4.00"))]
    assert people.returned("DELETE FROM t WHERE id = 2 RETURNING *") == ([(2, "Bob", None)], 1)
    assert people("DELETE FROM t") == 1
    people.commit()
    assert people.rows() == []


def test_update(people: Lake) -> None:
    assert people("UPDATE t SET amount = amount + 1") == 5
    assert people("UPDATE t SET name = upper(name), amount = NULL WHERE name LIKE 'A%'") == 1
    assert people("UPDATE t SET amount = news.amount FROM news WHERE t.id = news.id") == 2
    people.commit()
    assert people.rows() == [
        (1, "ADA", D("10.00")),
        (2, "Bob", None),
        (3, None, D("30.00")),
        (4, "Dan", D("5.00")),
        (5, "Eve", D("6.00")),
    ]
    assert people.returned("UPDATE t SET name = 'x' WHERE id > 3 RETURNING id, name") == ([(4, "x"), (5, "x")], 2)
    assert people.many("UPDATE t SET name = ? WHERE id = ?", [("y", 1), ("y", 4), ("y", 99)]) == 2
    assert people("UPDATE t SET name = DEFAULT WHERE id = 1") == 1
    people.commit()
    assert people("SELECT id, name FROM t ORDER BY id") == [(1, None), (2, "Bob"), (3, None), (4, "y"), (5, "x")]


def test_an_update_from_two_different_rows_is_an_error(people: Lake) -> None:
    before = people.rows()
    with pytest.raises(lakedbapi.DatabaseError):
        people("UPDATE t SET amount = v.x FROM (VALUES (1, 1), (1, 2)) v(id, x) WHERE t.id = v.id")
    assert people.rows() == before


def test_merge_with_all_clauses(people: Lake) -> None:
    count = people(
        "MERGE INTO t USING (VALUES (1, 0), (2, 20), (3, 30), (8, 80), (9, -1)) AS u(id, amount) ON t.id = u.id "
        "WHEN MATCHED AND u.amount = 0 THEN DELETE "
        "WHEN MATCHED AND t.name IS NULL THEN UPDATE SET name = 'found', amount = u.amount "
        "WHEN MATCHED THEN UPDATE SET amount = u.amount "
        "WHEN NOT MATCHED AND u.amount < 0 THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (u.id, u.amount) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'left'"
    )
    assert count == 6
    people.commit()
    assert people.rows() == [
        (2, "Bob", D("20.00")),
        (3, "found", D("30.00")),
        (5, "left", D("5.00")),
        (8, None, D("80.00")),
    ]


def test_merge_returns_rows_and_refuses_to_touch_one_twice(people: Lake) -> None:
    before = people.rows()
    with pytest.raises(lakedbapi.DatabaseError):
        people("MERGE INTO t USING news ON t.id = news.id WHEN MATCHED THEN UPDATE SET amount = 0")
    assert people.rows() == before
    rows, count = people.returned(
        "MERGE INTO t USING (SELECT DISTINCT * FROM news) n ON t.id = n.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED AND n.id IS NOT NULL THEN INSERT VALUES (n.id, 'new', n.amount) RETURNING merge_action, t.id"
    )
    assert (rows, count) == ([("DELETE", 1), ("DELETE", 3), ("INSERT", 7)], 3)


def test_insert_on_conflict(people: Lake) -> None:
    assert people("INSERT INTO t VALUES (1, 'no', 0), (6, 'yes', 6) ON CONFLICT (id) DO NOTHING") == 1
    upsert = (
        "INSERT INTO t (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name "
        "WHERE t.name IS DISTINCT FROM excluded.name"
    )
    assert people(upsert, 2, "Bea") == 1
    assert people(upsert, 2, "Bea") == 0
    assert people.many(upsert, [(2, "Bob"), (7, "Gil"), (5, "Eve")]) == 2
    people.commit()
    assert people("SELECT id, name FROM t ORDER BY id") == [
        (1, "Ada"),
        (2, "Bob"),
        (3, None),
        (4, "Dan"),
        (5, "Eve"),
        (6, "yes"),
        (7, "Gil"),
    ]


def test_truncate(people: Lake) -> None:
    assert people("TRUNCATE t") == 5
    assert people.rows() == []
    people.connection.rollback()
    assert len(people.rows()) == 5
    people("TRUNCATE TABLE t")
    people.commit()
    assert people.rows() == []


@pytest.mark.parametrize("in_memory", [True, False])
def test_rows_that_a_transaction_wrote_can_be_changed_in_it(
    people: Lake, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    """Many rows are in files before the transaction commits."""
    if not in_memory:
        monkeypatch.setattr("lakedbapi.dml.new_rows.MEMORY_LIMIT", 0)
    people("INSERT INTO t SELECT unnest([6, 7, 8]), unnest(['Fay', 'Gil', 'Hal']), unnest([6, 7, 8])")
    assert people("UPDATE t SET amount = 0 WHERE id IN (5, 6)") == 2
    assert people("DELETE FROM t WHERE id IN (4, 7)") == 2
    assert people("UPDATE t SET name = 'Flo' WHERE amount = 0") == 2
    merged = people("""
        MERGE INTO t USING (SELECT unnest([8, 9]) AS id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET name = 'Hedy' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'Ida', 9)
    """)
    assert merged == 2
    people.commit()
    assert people.rows()[3:] == [
        (5, "Flo", D("0.00")),
        (6, "Flo", D("0.00")),
        (8, "Hedy", D("8.00")),
        (9, "Ida", D("9.00")),
    ]


def test_many_rows_and_files(lake: Lake) -> None:
    lake.create("CREATE TABLE t (i BIGINT, s VARCHAR)")
    for start in (0, 10_000, 20_000):
        lake("INSERT INTO t SELECT i, 's' || i FROM range(?, ?) r(i)", start, start + 10_000)
        lake.commit()
    assert lake("DELETE FROM t WHERE i % 10 = 3") == 3_000
    lake.commit()
    assert lake("DELETE FROM t WHERE i % 10 = 4") == 3_000
    assert lake("UPDATE t SET s = NULL WHERE i % 1000 = 0") == 30
    lake.commit()
    assert lake("DELETE FROM t WHERE i < 10000") == 8_000
    lake.commit()
    assert lake("SELECT count(*), sum(i), count(s) FROM t") == [
        (16_000, sum(i for i in range(10_000, 30_000) if i % 10 not in (3, 4)), 15_980)
    ]
    ((counted,),) = lake("SELECT sum(record_count - deleted_count) FROM files('t')")
    assert counted == (16_000 if lake.kind.counts_deleted else None)


# Transactions


def test_a_transaction_is_seen_when_it_commits(people: Lake, other: Lake) -> None:
    assert len(other.rows()) == 5
    people("DELETE FROM t WHERE id = 1")
    people("UPDATE t SET amount = 0 WHERE id = 2")
    assert len(people.rows()) == 4
    assert len(other.rows()) == 5
    people.commit()
    assert len(other.rows()) == 5  # its snapshot
    other.connection.rollback()
    assert len(other.rows()) == 4
    people("DELETE FROM t")
    people.connection.rollback()
    assert len(people.rows()) == 4


def test_savepoints(people: Lake) -> None:
    people("DELETE FROM t WHERE id = 1")
    people("SAVEPOINT a")
    people("DELETE FROM t")
    people("SAVEPOINT b")
    people("INSERT INTO t VALUES (9, 'x', 1)")
    people("ROLLBACK TO SAVEPOINT a")
    assert len(people.rows()) == 4
    people("UPDATE t SET name = 'y' WHERE id = 2")
    people("RELEASE SAVEPOINT a")
    with pytest.raises(lakedbapi.ProgrammingError):
        people("ROLLBACK TO SAVEPOINT b")
    people.commit()
    assert people("SELECT id, name FROM t ORDER BY id") == [(2, "y"), (3, None), (4, "Dan"), (5, "Eve")]


def test_a_statement_that_fails_leaves_nothing_and_the_rest_stays(people: Lake) -> None:
    people("DELETE FROM t WHERE id = 1")
    with pytest.raises(lakedbapi.DataError):
        people("UPDATE t SET amount = 12345678901 WHERE id > 3")
    with pytest.raises(lakedbapi.DataError):
        people("INSERT INTO t SELECT 6, 'x', CAST(name AS INTEGER) FROM t")
    people.commit()
    assert people("SELECT id FROM t ORDER BY id") == [(2,), (3,), (4,), (5,)]


def test_changes_of_different_rows_both_commit(people: Lake, other: Lake) -> None:
    other.rows()
    people("INSERT INTO t VALUES (6, 'Fay', 6)")
    other("INSERT INTO t VALUES (7, 'Gil', 7)")
    people.commit()
    other.commit()
    assert people("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,), (4,), (5,), (6,), (7,)]


def test_changes_of_one_row_conflict(people: Lake, other: Lake) -> None:
    other.rows()
    people("UPDATE t SET amount = 1 WHERE id = 1")
    other("UPDATE t SET amount = 2 WHERE id = 1")
    people.commit()
    with pytest.raises(lakedbapi.OperationalError) as raised:
        other.commit()
    assert raised.value.retryable
    other.connection.rollback()
    assert other("SELECT amount FROM t WHERE id = 1") == [(D("1.00"),)]


def test_begin_and_commit_as_statements(people: Lake, kind: Kind) -> None:
    auto = Lake(kind, people.directory, autocommit=True)
    auto("BEGIN")
    auto("DELETE FROM t WHERE id = 1")
    auto("ROLLBACK")
    auto("BEGIN TRANSACTION")
    auto("DELETE FROM t WHERE id = 2")
    auto("COMMIT")
    assert auto("DELETE FROM t WHERE id = 3") == 1
    auto.connection.close()
    assert people("SELECT id FROM t ORDER BY id") == [(1,), (4,), (5,)]


def test_nothing_is_committed_where_nothing_changed(people: Lake) -> None:
    before = people("SELECT max(snapshot_id), count(*) FROM history('t')")
    assert people("DELETE FROM t WHERE id = 99") == 0
    assert people("UPDATE t SET name = 'x' WHERE FALSE") == 0
    people.commit()
    assert people("SELECT max(snapshot_id), count(*) FROM history('t')") == before


# Time travel and the change feed


def test_what_a_transaction_says_of_itself_is_in_the_history(people: Lake) -> None:
    told = "SELECT author, commit_message, commit_extra_info FROM history('t') ORDER BY snapshot_time DESC LIMIT 1"
    before = people(told)
    assert before[0][:2] == (None, None)
    people("CALL set_commit_message('jane', 'every night', extra_info => '{\"run\": 7}')")
    people("DELETE FROM t WHERE id = 1")
    people.commit()
    assert people(told) == [("jane", "every night", '{"run": 7}')]
    people("DELETE FROM t WHERE id = 2")
    people.commit()
    assert people(told) == before


def test_time_travel_in_all_spellings(people: Lake) -> None:
    people("DELETE FROM t WHERE id < 5")
    last = people.commit()
    assert len(people.rows()) == 1
    history = people("SELECT snapshot_id, snapshot_time FROM history('t') ORDER BY snapshot_time")
    assert len(history) == 3 + people.kind.starts_empty
    assert history[-1][0] == last
    two, at = history[-2]
    for spelling in (
        f"t AT (VERSION => {two})",
        f"t VERSION AS OF {two}",
        f"t FOR VERSION AS OF {two}",
        f"t FOR SYSTEM_VERSION AS OF {two} AS x",
        f"t AS x FOR VERSION AS OF {two}",
    ):
        assert people(f"SELECT count(*) FROM {spelling}") == [(5,)], spelling
    for spelling in (
        "t AT (TIMESTAMP => ?)",
        "t TIMESTAMP AS OF ?",
        "t FOR TIMESTAMP AS OF ?",
        "t FOR SYSTEM_TIME AS OF ? AS x",
        "t AS x FOR TIMESTAMP AS OF ?",
    ):
        assert people(f"SELECT count(*) FROM {spelling}", at) == [(5,)], spelling
    counts = [people("SELECT count(*) FROM t AT (VERSION => ?)", version)[0][0] for version, _ in history]
    assert counts == [0, 3, 5, 1][-len(history) :]
    assert people(f"SELECT count(*) FROM t AS now_ JOIN t AT (VERSION => {two}) AS old USING (id)") == [(1,)]
    with lakedbapi.connect(people.kind.location(people.directory), as_of=at) as past:
        assert past.execute("SELECT count(*) FROM t").fetchone() == (5,)
        with pytest.raises(lakedbapi.Error):
            past.execute("DELETE FROM t")
    for missing in ("AT (VERSION => 987654)", "FOR TIMESTAMP AS OF '2001-01-01'"):
        with pytest.raises(lakedbapi.ProgrammingError):
            people(f"SELECT * FROM t {missing}")
    with pytest.raises(lakedbapi.ProgrammingError):
        people("SELECT * FROM t@v3")


def test_a_query_of_the_past_looks_up_the_files_of_then_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    lake("INSERT INTO t VALUES (1)")
    lake.commit()
    first = lake("SELECT max(snapshot_id) FROM history('t')")[0][0]
    lake("INSERT INTO t VALUES (2)")
    lake.commit()
    asked: list[str] = []
    contents = CatalogView.contents

    def counted(view: CatalogView, table: TableInfo) -> Contents:
        asked.append(table.name)
        return contents(view, table)

    monkeypatch.setattr(CatalogView, "contents", counted)
    for source in ("t", "lake.main.t", "t AS x"):
        asked.clear()
        assert lake(f"SELECT * FROM {source} FOR VERSION AS OF {first}") == [(1,)]
        assert asked == ["t"]
    assert lake(f"SELECT t.id FROM t FOR VERSION AS OF {first}") == [(1,)]
    assert sorted(lake(f"SELECT t.id, u.id FROM t FOR VERSION AS OF {first}, t AS u")) == [(1, 1), (1, 2)]
    assert sorted(lake(f"SELECT t.id, x.n FROM t FOR VERSION AS OF {first}, (SELECT id AS n FROM main.t) x")) == [
        (1, 1),
        (1, 2),
    ]


def test_the_change_feed(lake: Lake) -> None:
    lake.create("CREATE TABLE t (i INTEGER, s VARCHAR)", **lake.kind.feed)
    lake("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    one = lake.commit()
    lake("DELETE FROM t WHERE i = 1")
    lake("UPDATE t SET s = 'x' WHERE i = 2")
    two = lake.commit()
    lake("MERGE INTO t USING (VALUES (3), (4)) n(i) ON t.i = n.i WHEN MATCHED THEN DELETE "
         "WHEN NOT MATCHED THEN INSERT VALUES (n.i, 'd')")  # fmt: skip
    three = lake.commit()
    numbers = {one: 1, two: 2, three: 3}

    def feed(first: int | None, last: int | None) -> Rows:
        rows = lake("SELECT snapshot_id, change_type, i, s FROM table_changes('t', ?, ?)", first, last)
        return sorted((numbers[id], *rest) for id, *rest in rows)

    old, new = ("update_preimage", "update_postimage") if lake.kind.follows_rows else ("delete", "insert")
    assert feed(one, one) == [(1, "insert", 1, "a"), (1, "insert", 2, "b"), (1, "insert", 3, "c")]
    assert feed(two, three) == sorted(
        [(2, "delete", 1, "a"), (2, old, 2, "b"), (2, new, 2, "x"), (3, "delete", 3, "c"), (3, "insert", 4, "d")]
    )
    assert lake("SELECT i FROM table_insertions('t', ?, ?)", three, three) == [(4,)]
    assert lake("SELECT i FROM table_deletions('t', ?, ?) ORDER BY i", two, three) == [(1,), (2,), (3,)]


# What a lake says of itself


def test_metadata(people: Lake) -> None:
    assert people("SHOW TABLES") == [("news",), ("t",)]
    assert [row[:2] for row in people("DESCRIBE t")] == [
        ("id", "INTEGER"),
        ("name", "VARCHAR"),
        ("amount", "DECIMAL(9,2)"),
    ]
    assert people(
        "SELECT column_name, data_type, is_nullable, ordinal_position FROM information_schema.columns "
        "WHERE table_name = 't' ORDER BY ordinal_position"
    ) == [("id", "INTEGER", "NO", 1), ("name", "VARCHAR", "YES", 2), ("amount", "DECIMAL(9,2)", "YES", 3)]
    assert people("SELECT table_type, is_insertable_into FROM information_schema.tables WHERE table_name = 't'") == [
        ("BASE TABLE", "YES")
    ]
    assert sorted(people("SELECT record_count, deleted_count FROM files('t')")) == [(2, 0), (3, 0)]
    assert people("SELECT count(DISTINCT filename), max(file_row_number) FROM t") == [(2, 2)]
    assert len(people("DESCRIBE HISTORY t")) == 2 + people.kind.starts_empty
    assert len(people("DESCRIBE HISTORY t LIMIT 1")) == 1
    assert "1 of 2 data files read" in str(people("EXPLAIN SELECT * FROM t WHERE id = 1"))
    assert "1 matched" in str(people("EXPLAIN DELETE FROM t WHERE id = 1"))
    assert "5 matched" in str(people("EXPLAIN UPDATE t SET name = 'x'"))
    assert len(people("SUMMARIZE t")) == 3
    assert len(people.rows()) == 5


def test_delete_files(people: Lake) -> None:
    people("INSERT INTO t SELECT i, 'r', 0 FROM range(100, 1100) r(i)")
    people.commit()
    people("DELETE FROM t WHERE id IN (500, 600)")
    people.commit()
    files = people("SELECT record_count, deleted_count FROM files('t') ORDER BY ALL")
    deletes = people("SELECT delete_count FROM delete_files('t')")
    plan = str(people("EXPLAIN DELETE FROM t WHERE id = 700"))
    if people.kind.properties.get("delta.enableDeletionVectors") == "false":
        assert (files, deletes) == ([(2, 0), (3, 0), (998, 0)], [])
        assert "copy-on-write" in plan
    else:
        assert (files, deletes) == ([(2, 0), (3, 0), (1000, 2 if people.kind.counts_deleted else None)], [(2,)])
        assert "merge-on-read" in plan


# Types


VALUES: list[tuple[str, object]] = [
    ("BOOLEAN", True),
    ("TINYINT", -128),
    ("SMALLINT", -(2**15)),
    ("INTEGER", 2**31 - 1),
    ("BIGINT", -(2**63)),
    ("FLOAT", 0.5),
    ("DOUBLE", 1e300),
    ("DECIMAL(38, 10)", D("1234567890123456789012345678.0123456789")),
    ("VARCHAR", "ü'\n\0 🦆"),
    ("BLOB", b"\x00\xff"),
    ("DATE", datetime.date(1, 1, 1)),
    ("TIMESTAMP", datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)),
    ("TIMESTAMPTZ", datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)),
    ("INTEGER[]", [1, None, 3]),
    ("STRUCT(a INTEGER, b VARCHAR[])", {"a": None, "b": ["x", None]}),
    ("MAP(VARCHAR, INTEGER)", {"k": 1, "l": None}),
]


def test_values_of_each_type_come_back(lake: Lake) -> None:
    for number, (type, value) in enumerate(VALUES):
        t = f"t{number}"
        lake.create(f"CREATE TABLE {t} (i INTEGER, v {type})")
        assert lake(f"INSERT INTO {t} VALUES (1, ?), (2, NULL)", value) == 2
        assert lake.many(f"INSERT INTO {t} VALUES (?, ?)", [(3, value), (4, None)]) == 2
        lake.commit()
        assert lake(f"UPDATE {t} SET v = (SELECT v FROM {t} WHERE i = 1) WHERE i = 2") == 1
        lake.commit()
        assert lake(f"SELECT v FROM {t} ORDER BY i") == [(value,), (value,), (value,), (None,)], type
        ((named,),) = lake(
            "SELECT data_type FROM information_schema.columns WHERE column_name = 'v' AND table_name = ?", t
        )
        assert [(named.replace('"', ""),)] == lake(f"SELECT replace(typeof(v), '\"', '') FROM {t} WHERE i = 1")
        assert lake(f"DELETE FROM {t} WHERE v IS NULL") == 1
        lake.commit()
        same = f"SELECT count(*) FROM {t} WHERE v IS NOT DISTINCT FROM (SELECT v FROM {t} WHERE i = 1)"
        assert lake(same) == [(3,)], type


def test_numbers_that_are_none(lake: Lake) -> None:
    lake.create("CREATE TABLE t (i INTEGER, d DOUBLE)")
    lake("INSERT INTO t VALUES (1, 'nan'), (2, 'inf'), (3, '-inf'), (4, NULL), (5, -0.0)")
    lake.commit()
    assert lake("SELECT i FROM t WHERE d > 1e308 ORDER BY i") == [(1,), (2,)]
    assert lake("DELETE FROM t WHERE isnan(d)") == 1
    lake.commit()
    assert lake("SELECT i FROM t WHERE d = 0 OR d IS NULL ORDER BY i") == [(4,), (5,)]


# Views


def test_views_are_there_or_refused(people: Lake) -> None:
    if not capabilities(people.connection).views:
        with pytest.raises(lakedbapi.NotSupportedError, match=f"CREATE VIEW v.*{people.kind.format}"):
            people("CREATE VIEW v AS SELECT id FROM t")
        return
    people("CREATE VIEW v AS SELECT id FROM t WHERE id > 3")
    people.commit()
    assert people.rows("v") == [(4,), (5,)]


def test_sources_at_an_earlier_version_leave_their_present_files_alone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create("CREATE TABLE t (i INTEGER, s INTEGER)")
    lake.create("CREATE TABLE s (i INTEGER)")
    lake("INSERT INTO s VALUES (1), (2)")
    lake.commit()
    (then,) = lake("SELECT max(snapshot_id) FROM history('s')")[0]
    lake.connection.rollback()
    lake("DELETE FROM s")
    lake.commit()
    looked_up = []
    contents = CatalogView.contents

    def noting(view: CatalogView, table: TableInfo) -> Contents:
        looked_up.append((table.name, view.snapshot))
        return contents(view, table)

    monkeypatch.setattr(CatalogView, "contents", noting)
    s = f"s FOR VERSION AS OF {then}"
    assert lake(f"INSERT INTO t SELECT s.i, s.i FROM {s}") == 2
    assert lake(f"UPDATE t SET s = 3 WHERE i = (SELECT max(s.i) FROM {s}) AND s < 3 RETURNING i, s") == [(2, 3)]
    assert lake(f"UPDATE t SET s = 5 FROM {s} WHERE t.i = s.i AND t.s = 3") == 1
    assert lake(f"WITH c AS (FROM {s}) DELETE FROM t WHERE s IN (SELECT i FROM c)") == 1
    assert lake(f"MERGE INTO t USING {s} ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.i, 7)") == 1
    assert lake.rows() == [(1, 7), (2, 5)]
    present = lake.connection.session.context().transaction.view("lake").snapshot
    assert ("s", present) not in looked_up
    assert {name for name, _ in looked_up} == {"s", "t"}
