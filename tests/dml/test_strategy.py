"""Merge-on-read or copy-on-write, and what either leaves staged."""

from __future__ import annotations

import pytest

import lakedbapi


def test_a_few_deleted_rows_become_a_delete_vector(files):
    files("DELETE FROM t WHERE id IN (3, 150)")
    staged = files.staged()
    assert [len(vector) for vector in staged.deleted.values()] == [1, 1]
    assert not staged.removed


def test_a_small_file_that_lost_most_rows_is_rewritten(files):
    before = dict(files("SELECT id, rowid FROM t"))
    files("DELETE FROM t WHERE id BETWEEN 0 AND 80")
    staged = files.staged()
    assert (len(staged.removed), staged.removed, staged.deleted) == (1, frozenset(staged.rewritten), {})
    assert sum(part.rows.num_rows for part in staged.rows) == 19
    files.commit()
    after = dict(files("SELECT id, rowid FROM t"))
    assert after == {i: row_id for i, row_id in before.items() if i > 80}


def test_rows_deleted_earlier_count_for_the_decision_and_stay_deleted(files):
    files("DELETE FROM t WHERE id BETWEEN 0 AND 39")
    files.commit()
    files("DELETE FROM t WHERE id BETWEEN 40 AND 78")
    assert not files.staged().rewritten
    files("DELETE FROM t WHERE id = 79")
    assert len(files.staged().rewritten) == 1
    files.commit()
    assert [i for (i,) in files("SELECT id FROM t ORDER BY id")] == list(range(80, 200))


def test_survivors_keep_their_order(files):
    files("DELETE FROM t WHERE id BETWEEN 10 AND 95")
    files.commit()
    assert [i for (i,) in files("SELECT id FROM t WHERE id < 100")] == [*range(10), *range(96, 100)]


@pytest.mark.parametrize(("mode", "rewritten"), [("merge-on-read", 0), ("copy-on-write", 2)])
def test_the_table_s_write_mode_decides(files, mode, rewritten):
    files(f"ALTER TABLE t SET ('lake.write_mode' = '{mode}')")
    files("DELETE FROM t WHERE id BETWEEN 1 AND 101")
    assert len(files.staged().rewritten) == rewritten
    files.commit()
    assert [i for (i,) in files("SELECT id FROM t ORDER BY id")] == [0, *range(102, 200)]


def test_updates_and_merges_copy_on_write_too(files):
    files("ALTER TABLE t SET ('lake.write_mode' = 'copy-on-write')")
    before = dict(files("SELECT id, rowid FROM t"))
    files("UPDATE t SET v = 'u' WHERE id = 5")
    files("MERGE INTO t USING (SELECT 150 AS i) s ON id = i WHEN MATCHED THEN UPDATE SET v = 'm'")
    assert len(files.staged().rewritten) == 2
    files.commit()
    assert dict(files("SELECT id, rowid FROM t")) == before
    assert files("SELECT id, v FROM t WHERE v IN ('u', 'm') ORDER BY id") == [(5, "u"), (150, "m")]


@pytest.mark.parametrize(
    "option", ["'lake.write_mode' = 'copy'", "'lake.rewrite_deleted_fraction' = '80%'", "'lake.rewrite_max_rows' = 'x'"]
)
def test_a_value_that_an_option_cannot_have_is_refused_when_it_is_set(files, option):
    name, value = option.split(" = ")
    for statement in (
        f"ALTER TABLE t SET ({option})",
        f"CREATE TABLE u (i INTEGER) WITH ({option})",
        f"CALL ducklake_set_option('lake', {option.replace(' =', ',')})",
    ):
        with pytest.raises(lakedbapi.ProgrammingError, match=f"{name.strip(chr(39))} cannot be {value}"):
            files(statement)
    files("DELETE FROM t WHERE id = 1")


class TestExplain:
    def lines(self, lake, sql):
        return [line for (line,) in lake(f"EXPLAIN {sql}")]

    def test_tells_what_is_pruned_read_and_why_a_file_is_kept(self, files):
        lines = self.lines(files, "DELETE FROM t WHERE id = 3")
        assert lines[0] == "DELETE lake.main.t"
        assert "files: 2 live, 1 pruned, 0 dropped whole unread, 1 read" in lines[1]
        assert "rows: 1 matched" in lines[2]
        assert "1 of 100 rows gone: merge-on-read" in lines[3]
        assert files.staged().empty

    def test_tells_what_is_dropped_unread(self, files):
        lines = self.lines(files, "DELETE FROM t WHERE id < 100")
        assert "1 pruned, 1 dropped whole unread, 0 read" in lines[1]
        assert "rows: 100 matched, 100 of them unread" in lines[2]

    def test_tells_what_is_rewritten(self, files):
        lines = self.lines(files, "UPDATE t SET v = 'x' WHERE id BETWEEN 5 AND 120")
        assert any("95 of 100 rows gone: copy-on-write" in line for line in lines)
        assert any("21 of 100 rows gone: merge-on-read" in line for line in lines)

    def test_tells_of_merge_and_of_everything(self, files):
        merge = "MERGE INTO t USING (VALUES (1), (500)) s(i) ON id = i WHEN MATCHED THEN DELETE"
        assert any("rows: 1 matched" in line for line in self.lines(files, merge))
        assert any("200 deleted" in line for line in self.lines(files, "DELETE FROM t"))
        assert any("data files" in line for line in self.lines(files, "INSERT INTO t VALUES (1, 'x')"))


def test_the_thresholds_are_options(files):
    files("ALTER TABLE t SET ('lake.rewrite_deleted_fraction' = '0.5')")
    files("DELETE FROM t WHERE id BETWEEN 0 AND 49")
    assert len(files.staged().rewritten) == 1
    files("ALTER TABLE t SET ('lake.rewrite_max_rows' = '10')")
    files("DELETE FROM t WHERE id BETWEEN 110 AND 170")
    assert len(files.staged().rewritten) == 1
    with pytest.raises(lakedbapi.ProgrammingError, match="rewrite_max_rows"):
        files("ALTER TABLE t SET ('lake.rewrite_max_rows' = 'many')")
