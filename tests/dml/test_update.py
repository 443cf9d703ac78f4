from __future__ import annotations

import pytest

import lakedbapi


def test_matched_rows_count_even_if_they_stay_the_same(t):
    assert t("UPDATE t SET v = v") == 3
    assert t.rows() == [(1, "a"), (2, "b"), (3, None)]


def test_no_match_stages_nothing(t):
    assert t("UPDATE t SET v = 'x' WHERE id > 3") == 0
    assert t.staged().empty


def test_all_values_see_the_old_row(lake):
    lake("CREATE TABLE p (a INTEGER, b INTEGER)")
    lake("INSERT INTO p VALUES (1, 2)")
    lake("UPDATE p SET a = b, b = a")
    assert lake.rows("p") == [(2, 1)]


def test_an_assignment_may_name_the_target_before_the_column(t):
    t("UPDATE t SET t.v = 'x' WHERE t.id = 1")
    assert t("SELECT v FROM t WHERE id = 1") == [("x",)]


def test_several_columns_can_be_assigned_at_once(t):
    t("UPDATE t SET (id, v) = (id + 10, 'x') WHERE id = 1")
    assert (11, "x") in t.rows()


def test_default_gives_the_column_default(lake):
    lake("CREATE TABLE d (a INTEGER, b VARCHAR DEFAULT 'def')")
    lake("INSERT INTO d VALUES (1, 'x')")
    lake("UPDATE d SET a = DEFAULT, b = DEFAULT")
    assert lake.rows("d") == [(None, "def")]


def test_fields_of_structs_can_be_assigned(lake):
    lake("CREATE TABLE s (st STRUCT(a INTEGER, c STRUCT(d INTEGER, e VARCHAR)))")
    lake("INSERT INTO s VALUES ({'a': 1, 'c': {'d': 2, 'e': 'x'}}), (NULL)")
    lake("UPDATE s SET st.a = st.a + 1, st.c.d = 7")
    assert lake.rows("s") == [({"a": 2, "c": {"d": 7, "e": "x"}},), ({"a": None, "c": {"d": 7, "e": None}},)]


def test_assigning_a_column_twice_is_an_error(t):
    with pytest.raises(lakedbapi.ProgrammingError, match="assigned twice"):
        t("UPDATE t SET v = 'x', V = 'y'")


def test_from_may_match_a_row_several_times_with_one_outcome(t):
    assert t("UPDATE t SET v = s.x FROM (VALUES (1, 'n'), (1, 'n')) s(i, x) WHERE id = i") == 1
    assert (1, "n") in t.rows()


def test_from_that_gives_a_row_different_values_is_an_error(t):
    with pytest.raises(lakedbapi.ProgrammingError, match="different new values"):
        t("UPDATE t SET v = s.x FROM (VALUES (1, 'n'), (1, 'm')) s(i, x) WHERE id = i")
    assert (1, "a") in t.rows()


def test_the_source_may_be_the_target_before_the_statement(t):
    assert t("UPDATE t SET v = o.v FROM t AS o WHERE o.id = t.id - 1") == 2
    assert t.rows() == [(1, "a"), (2, "a"), (3, "b")]


def test_a_value_may_come_from_a_correlated_subquery(t):
    t("UPDATE t SET v = (SELECT max(o.v) FROM t AS o WHERE o.id <> t.id)")
    assert t.rows() == [(1, "b"), (2, "a"), (3, "b")]


def test_returning_gives_the_new_rows_and_those_beside_them(t):
    got = t("UPDATE t SET v = v || s.x FROM (VALUES (2, '!')) s(i, x) WHERE id = i RETURNING t.v, s.x, (SELECT 5) AS n")
    assert got == [("b!", "!", 5)]


def test_a_value_that_does_not_fit_names_the_column(t):
    with pytest.raises(lakedbapi.DataError, match=r"t\.id: Could not convert string 'a'"):
        t("UPDATE t SET id = v WHERE id = 1")
    assert t.staged().empty


def test_not_null_is_enforced(lake):
    lake("CREATE TABLE n (id INTEGER NOT NULL)")
    lake("INSERT INTO n VALUES (1)")
    with pytest.raises(lakedbapi.IntegrityError, match=r"n\.id"):
        lake("UPDATE n SET id = NULL")


def test_row_ids_survive(files):
    before = dict(files("SELECT id, rowid FROM t"))
    files("UPDATE t SET v = 'x' WHERE id % 3 = 0")
    files("UPDATE t SET v = 'y' WHERE id % 6 = 0")
    files.commit()
    assert dict(files("SELECT id, rowid FROM t")) == before
    assert files("SELECT count(*) FROM t WHERE v = 'x'") == [(33,)]


def test_rows_of_the_same_transaction_stay_new(t):
    t("INSERT INTO t VALUES (4, 'd')")
    t("UPDATE t SET v = v || '!' WHERE id IN (1, 4)")
    t.commit()
    assert t.rows() == [(1, "a!"), (2, "b"), (3, None), (4, "d!")]
    assert len(set(t("SELECT rowid FROM t"))) == 4


def test_many_new_versions_go_to_files_before_the_commit(files, monkeypatch):
    monkeypatch.setattr("lakedbapi.dml.new_rows.MEMORY_LIMIT", 100)
    files("INSERT INTO t VALUES (1000, 'new')")
    before = dict(files("SELECT id, rowid FROM t WHERE id < 200"))
    assert files("UPDATE t SET v = 'x'") == 201
    assert [staged.file.has_row_ids for staged in files.staged().files] == [True]
    files.commit()
    assert {v for _, v in files.rows()} == {"x"}
    assert dict(files("SELECT id, rowid FROM t WHERE id < 200")) == before


def test_the_source_does_not_see_the_target(t):
    t("CREATE TABLE u (x VARCHAR)")
    t("INSERT INTO u VALUES ('u')")
    for statement in (
        "UPDATE t SET v = s.x FROM (SELECT x FROM u WHERE id = 1) s",
        "DELETE FROM t USING (SELECT x FROM u WHERE id = 1) s",
        "MERGE INTO t USING (SELECT x FROM u WHERE id = 1) s ON v = x WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(lakedbapi.ProgrammingError, match='"id" not found'):
            t(statement)


def test_hidden_columns_of_the_target_can_be_named(files):
    assert files("UPDATE t SET v = v || rowid WHERE rowid IN (7, 150)") == 2
    assert files("SELECT v FROM t WHERE id IN (7, 150) ORDER BY id") == [("v77",), ("v150150",)]
    assert files("DELETE FROM t WHERE file_row_number = 99 AND filename LIKE '%.parquet'") == 2


@pytest.mark.parametrize(
    ("statement", "way_out"),
    [
        ("DELETE FROM t USING t AS b WHERE t.rowid = b.rowid", r"write \(SELECT \*, rowid FROM t\) AS b there"),
        ("UPDATE t SET v = '' FROM t AS b WHERE t.id = b.id AND t.rowid IN (SELECT rowid FROM t)", "AS b there"),
        ("MERGE INTO t USING t AS b ON t.id = b.rowid WHEN MATCHED THEN DELETE", "AS b there"),
        ("DELETE FROM t USING t AS b WHERE t.rowid = 1 AND rowid = 1", "write which table's it is"),
    ],
)
def test_a_hidden_column_that_may_be_of_another_relation_is_refused(files, statement, way_out):
    with pytest.raises(lakedbapi.NotSupportedError, match=way_out):
        files(statement)


def test_errors_do_not_name_what_only_the_engine_query_has(t):
    for statement in ("UPDATE t SET v = nope", "UPDATE t SET v = max(v)", "DELETE FROM t WHERE _lake = 1"):
        with pytest.raises(lakedbapi.ProgrammingError) as caught:
            t(statement)
        assert "_lake_" not in str(caught.value)


@pytest.mark.parametrize("share", [2, 10])
def test_rows_that_were_deleted_before_stay_away(files, share):
    files(f"DELETE FROM t WHERE id % {share} = 0")
    files.commit()
    left = [i for i in range(200) if i % share]
    assert files("UPDATE t SET v = 'new' WHERE id < 150") == sum(i < 150 for i in left)
    changed = files("UPDATE t SET v = 'from' FROM range(200) s(k) WHERE id = k AND k >= 150")
    assert changed == sum(i >= 150 for i in left)
    files.commit()
    assert files.rows() == sorted(((i, "new" if i < 150 else "from") for i in left), key=repr)


def test_an_expression_may_fail_for_rows_that_were_deleted_before(files):
    sql = "UPDATE t SET v = CAST(replace(v, 'v', '') AS INTEGER) + 1 WHERE id >= 0 RETURNING id"
    files("UPDATE t SET v = 'none' WHERE id = 17")
    files.commit()
    with pytest.raises(lakedbapi.DataError):
        files(sql)
    files("DELETE FROM t WHERE id = 17")
    files.commit()
    assert sorted(files(sql)) == [(i,) for i in range(200) if i != 17]
    files.commit()
    assert files.rows() == sorted(((i, str(i + 1)) for i in range(200) if i != 17), key=repr)
