from __future__ import annotations

import pytest

from lakedbapi.errors import ProgrammingError
from tests.dml.conftest import Lake


def test_a_schema_lasts_after_commit(lake: Lake) -> None:
    lake("CREATE SCHEMA s")
    lake("CREATE TABLE s.t (i INTEGER)")
    lake.commit()
    assert lake("SHOW SCHEMAS") == [("lake", "main", True), ("lake", "s", False)]
    assert lake("SELECT * FROM s.t") == []


def test_a_schema_name_is_taken_in_any_case(lake: Lake) -> None:
    lake("CREATE SCHEMA s")
    lake("CREATE SCHEMA IF NOT EXISTS S")
    with pytest.raises(ProgrammingError, match="S exists already"):
        lake("CREATE SCHEMA S")


def test_only_an_empty_schema_is_dropped_without_cascade(lake: Lake) -> None:
    lake("CREATE SCHEMA s")
    lake("CREATE TABLE s.t (i INTEGER)")
    lake("CREATE VIEW s.v AS SELECT 1 AS one")
    lake.commit()
    with pytest.raises(ProgrammingError, match="not empty: it has t, v; drop them, or write CASCADE"):
        lake("DROP SCHEMA s")
    lake("DROP SCHEMA s CASCADE")
    lake.commit()
    assert lake("SHOW ALL TABLES") == []
    lake("DROP SCHEMA IF EXISTS s")
    with pytest.raises(ProgrammingError, match="schema s does not exist"):
        lake("DROP SCHEMA s")


def test_main_stays(lake: Lake) -> None:
    with pytest.raises(ProgrammingError, match="every catalog has it"):
        lake("DROP SCHEMA main CASCADE")


def test_what_a_transaction_makes_and_drops_again_is_no_change(lake: Lake) -> None:
    before = lake("SELECT * FROM lake.last_committed_snapshot()")
    lake("CREATE SCHEMA s")
    lake("CREATE TABLE s.t (i INTEGER)")
    lake("INSERT INTO s.t VALUES (1)")
    lake("DROP SCHEMA s CASCADE")
    lake.commit()
    assert lake("SELECT * FROM lake.last_committed_snapshot()") == before
