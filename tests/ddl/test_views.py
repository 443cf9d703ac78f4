from __future__ import annotations

import pytest

from lakedbapi.errors import ProgrammingError
from tests.dml.conftest import Lake


@pytest.fixture
def t(lake: Lake) -> Lake:
    lake("CREATE TABLE t (a INTEGER)")
    lake("INSERT INTO t VALUES (1), (2)")
    lake.commit()
    return lake


def test_a_view_lasts_and_follows_its_table(t: Lake) -> None:
    t("CREATE VIEW v (b) AS SELECT a FROM t WHERE a > 1")
    t.commit()
    t("INSERT INTO t VALUES (3)")
    assert sorted(t("SELECT b FROM v")) == [(2,), (3,)]


def test_a_view_can_be_replaced_renamed_and_dropped(t: Lake) -> None:
    t("CREATE VIEW v AS SELECT a FROM t")
    t.commit()
    t("CREATE OR REPLACE VIEW v AS SELECT 7 AS seven")
    t("ALTER VIEW v RENAME TO w")
    t.commit()
    assert t("SELECT seven FROM w") == [(7,)]
    t("DROP VIEW w")
    t("DROP VIEW IF EXISTS w")
    with pytest.raises(ProgrammingError, match="w does not exist"):
        t("DROP VIEW w")


def test_a_view_that_would_not_run_is_refused(t: Lake) -> None:
    with pytest.raises(ProgrammingError, match="nosuch"):
        t("CREATE VIEW v AS SELECT nosuch FROM t")
    with pytest.raises(ProgrammingError, match="nosuch"):
        t("CREATE VIEW v AS SELECT * FROM nosuch")
    assert t("SHOW VIEWS") == []


def test_a_view_cannot_read_itself(t: Lake) -> None:
    t("CREATE VIEW v AS SELECT a FROM t")
    with pytest.raises(ProgrammingError, match="reads itself"):
        t("CREATE OR REPLACE VIEW v AS SELECT * FROM v")
    assert t("SELECT count(*) FROM v") == [(2,)]


def test_a_view_may_be_called_like_a_column_a_text_or_a_cte_in_it(t: Lake) -> None:
    t("CREATE VIEW a AS SELECT a, 'a' AS text FROM t")
    t("CREATE VIEW c AS WITH c AS (SELECT 7 AS seven) SELECT * FROM c")
    assert t("SELECT count(a) FROM a") == [(2,)]
    assert t("SELECT * FROM c") == [(7,)]


def test_a_view_whose_table_is_gone_is_still_listed(t: Lake) -> None:
    t("CREATE VIEW v AS SELECT a FROM t")
    t("DROP TABLE t")
    assert t("SHOW TABLES") == [("v",)]
    with pytest.raises(ProgrammingError, match="t does not exist"):
        t("SELECT * FROM v")


def test_a_view_that_cannot_run_does_not_disturb_columns_of_its_name(t: Lake) -> None:
    t("CREATE TABLE gone (a INTEGER)")
    t("CREATE VIEW b AS SELECT a FROM gone")
    t("CREATE VIEW a AS SELECT a FROM b")
    t("DROP TABLE gone")
    assert sorted(t("SELECT a, 1 AS b FROM t")) == [(1, 1), (2, 1)]
    assert t("INSERT INTO t (a) SELECT a + 2 FROM t") == 2
    assert t("UPDATE t SET a = a + 1 WHERE a > 3") == 1
    assert t("DELETE FROM t WHERE a = 5") == 1
    for query in ("SELECT * FROM a", "SELECT 1 FROM t, a", "DELETE FROM t WHERE a IN (FROM a)"):
        with pytest.raises(ProgrammingError, match="gone does not exist"):
            t(query)
    t("CREATE TABLE gone (a INTEGER)")
    assert t("SELECT * FROM a") == []


def test_a_view_that_comes_to_read_itself_is_named_by_the_error(t: Lake) -> None:
    t("CREATE VIEW a AS SELECT a FROM t")
    t("CREATE VIEW b AS SELECT * FROM a")
    t("DROP VIEW a")
    t("ALTER VIEW b RENAME TO a")
    assert sorted(t("SELECT a FROM t")) == [(1,), (2,)]
    with pytest.raises(ProgrammingError, match="reads itself"):
        t("SELECT * FROM a")


def test_a_view_does_not_depend_on_the_schema_it_is_read_from(t: Lake) -> None:
    t("CREATE SCHEMA s")
    t("CREATE VIEW s.v AS WITH c AS (SELECT a FROM t) SELECT * FROM c")
    t("CREATE VIEW own AS SELECT * FROM lake.main.t")
    t.commit()
    t("USE s")
    assert t("SELECT count(*) FROM v") == [(2,)]
    assert t("SELECT count(*) FROM main.own") == [(2,)]


def test_a_view_does_not_depend_on_the_name_of_its_catalog(t: Lake, tmp_path: object) -> None:
    t("CREATE SCHEMA s")
    t("CREATE VIEW s.v AS SELECT * FROM lake.main.t")
    t.commit()
    t.connection.session.attach(f"{tmp_path}/lake", "again")
    assert t("SELECT count(*) FROM again.s.v") == [(2,)]


def test_if_not_exists_keeps_the_view(t: Lake) -> None:
    t("CREATE VIEW v AS SELECT 1 AS one")
    t("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS two")
    assert t("SELECT * FROM v") == [(1,)]
    with pytest.raises(ProgrammingError, match="exists already"):
        t("CREATE VIEW v AS SELECT 3 AS three")


def test_what_is_wrong_with_a_view_or_macro_is_told_without_the_engines_text(t: Lake) -> None:
    t("CREATE TABLE w (a INTEGER, b INTEGER)")
    t("CREATE VIEW v AS SELECT a, b FROM w")
    t("CREATE MACRO f(k) AS TABLE SELECT b FROM w WHERE a = k")
    t("CREATE MACRO look(k) AS (SELECT b FROM w WHERE a = k)")
    t("ALTER TABLE w DROP COLUMN b")
    for query, what in (("FROM v", "view 'v'"), ("FROM f(1)", "macro 'f'"), ("SELECT look(a) FROM w", "macro 'look'")):
        with pytest.raises(ProgrammingError, match=rf'^{what}: .*column "b" not found') as raised:
            t(query)
        assert "LINE" not in str(raised.value)
