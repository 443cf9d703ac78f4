"""DuckLake's table functions: ours have the names, columns, types and results of DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from compliance.ducklake.lakes import Ours, Shared, Theirs, assert_same_rows, script
from compliance.peers.lakes import Place, on_sqlite
from compliance.peers.peer import Peer, PeerError

LAKE = """
    CALL ducklake_set_option('lake', 'data_inlining_row_limit', 5);
    CREATE TABLE t (k INTEGER, v VARCHAR);
    INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i);
    INSERT INTO t SELECT i, 'w' || i FROM range(100, 200) r(i);
    INSERT INTO t VALUES (1000, 'inlined');
    DELETE FROM t WHERE k < 60;
    UPDATE t SET v = 'u' WHERE k BETWEEN 90 AND 99;
    CREATE SCHEMA s;
    CREATE TABLE s.u AS SELECT i FROM range(20) r(i);
    CALL ducklake_set_option('lake', 'target_file_size', '10MB', schema => 's');
    CALL ducklake_set_option('lake', 'auto_compact', false, schema => 's', table_name => 'u')
"""

TELLING = (
    "ducklake_snapshots('lake')",
    "lake.snapshots()",
    "ducklake_table_info('lake')",
    "lake.table_info()",
    "ducklake_list_files('lake', 't')",
    "ducklake_list_files('lake', 'u', schema => 's')",
    "ducklake_list_files('lake', 't', snapshot_version => 3)",
    "ducklake_current_snapshot('lake')",
    "lake.current_snapshot()",
    "lake.options()",
    "ducklake_table_insertions('lake', 'main', 't', 2, 6)",
    "ducklake_table_deletions('lake', 'main', 't', 2, 8)",
    "ducklake_table_changes('lake', 'main', 't', 2, 8)",
    "ducklake_table_changes('lake', schema_name => 'main', table_name => 't', start_snapshot => 2, end_snapshot => 8)",
    "lake.table_changes('t', 2, 8)",
    "lake.table_insertions('t', 2, 6)",
    "lake.table_deletions('t', 2, 8)",
)
"""Functions that can be asked as often as one likes."""

CHANGING = (
    "ducklake_flush_inlined_data('lake')",
    "ducklake_expire_snapshots('lake', versions => [2, 3], dry_run => true)",
    "ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.5)",
    "ducklake_merge_adjacent_files('lake')",
    "ducklake_merge_adjacent_files('lake', 't', max_compacted_files => 1)",
    "ducklake_expire_snapshots('lake', versions => [2, 3])",
    "ducklake_expire_snapshots('lake')",
    "ducklake_cleanup_old_files('lake', dry_run => true, cleanup_all => true)",
    "ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "ducklake_cleanup_old_files('lake')",
    "ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    "ducklake_set_option('lake', 'parquet_version', 2)",
    "ducklake_set_option('lake', 'target_file_size', '5MiB', table_name => 't')",
    "ducklake_set_commit_message('lake', 'me', 'why', extra_info => '{}')",
)
"""Functions that change the lake, to be called in this order."""


def shape(program: Ours | Theirs, sql: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in program.rows(f"DESCRIBE {sql}")]


def result_shape(program: Ours | Theirs, sql: str) -> list[tuple[str, str]]:
    """Columns and Arrow types of a result."""
    table = (
        program.peer.execute(sql) if isinstance(program, Theirs) else program.cursor.execute(sql).fetch_arrow_table()
    )
    return [(field.name, str(field.type).replace("<l: ", "<item: ")) for field in table.schema]


def texts(program: Ours | Theirs, function: str) -> list[tuple[Any, ...]]:
    return sorted(program.rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {function}"), key=repr)


def test_functions_that_tell(shared: Shared) -> None:
    script(shared.theirs, LAKE)
    for function in TELLING:
        assert shape(shared.ours, f"SELECT * FROM {function}") == shape(shared.theirs, f"SELECT * FROM {function}")
        ours, theirs = (texts(program, function) for program in shared.both)
        if "options" in function:  # Descriptions are in own words.
            ours, theirs = ([(row[0], *row[2:]) for row in rows] for rows in (ours, theirs))
        if shared.encrypted and "list_files" in function:  # Keys are secrets here, which SQL does not show.
            theirs = [(*row[:3], None, *row[4:7], None) for row in theirs]
        assert ours == theirs, function


def test_each_knows_the_last_snapshot_that_it_committed_itself(shared: Shared) -> None:
    spellings = ("FROM ducklake_last_committed_snapshot('lake')", "FROM lake.last_committed_snapshot()")
    assert shape(shared.ours, spellings[0]) == shape(shared.theirs, spellings[0])
    for number, program in enumerate((*shared.both, *shared.both), 1):
        program.execute(f"CREATE TABLE t{number} AS SELECT * FROM range(20)")
        expected = {program.name: number, "duckdb" if program is shared.ours else "lakedbapi": number - 1 or None}
        for sql in spellings:
            assert {each.name: each.value(sql) for each in shared.both} == expected


def test_settings_name_the_catalogs_database(shared: Shared) -> None:
    ours, theirs = (program.rows("SELECT catalog_type, data_path FROM lake.settings()") for program in shared.both)
    assert ours == theirs
    assert shape(shared.ours, "FROM lake.settings()") == shape(shared.theirs, "FROM lake.settings()")


@pytest.fixture
def twins(tmp_path: Path, peer: Peer) -> Iterator[tuple[Ours, Theirs]]:
    """The same lake twice, both made by DuckDB: one for each program."""
    places: list[Place] = []
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        places.append(on_sqlite(tmp_path / name))
        program = Theirs(peer, places[-1])
        script(program, LAKE)
        if name == "theirs":
            peer.execute("USE memory")
            peer.execute("DETACH lake")
    peer.reset()
    theirs, ours = Theirs(peer, places[0]), Ours(places[1])
    yield ours, theirs
    ours.close()
    peer.reset()


def test_functions_that_change(twins: tuple[Ours, Theirs]) -> None:
    """In the same columns; with the same results, but for names and times."""
    ours, theirs = twins
    for function in CHANGING:
        call = f"SELECT * FROM {function}"
        rows, expected = ours.rows(call), theirs.rows(f"SELECT COLUMNS(*) FROM {function}")
        if "path" not in {column[0] for column in ours.cursor.description or ()}:
            counts = [[value for value in row if isinstance(value, (int, str))] for row in rows]
            assert counts == [[value for value in row if isinstance(value, (int, str))] for row in expected], function
        assert result_shape(ours, f"CALL {function}") == result_shape(theirs, f"CALL {function}")
    assert ours.rows("FROM t ORDER BY ALL") == theirs.rows("FROM t ORDER BY ALL")


def test_wrong_options_are_refused_by_both(shared: Shared) -> None:
    for option in ("'parquet_compression', 'zip'", "'rewrite_delete_threshold', '2'", "'version', '2'", "'x', '1'"):
        call = f"CALL ducklake_set_option('lake', {option})"
        with pytest.raises(lakedbapi.ProgrammingError):
            shared.ours.execute(call)
        with pytest.raises(PeerError):
            shared.theirs.execute(call)


def test_options_of_either_hold_for_the_other(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t (i INTEGER)")
    for program in shared.both:
        program.execute("CALL ducklake_set_option('lake', 'target_file_size', '5MiB', table_name => 't')")
        program.execute("CALL ducklake_set_option('lake', 'parquet_version', 2, schema => 'main')")
        program.execute("CALL ducklake_set_option('lake', 'delete_older_than', '3 days')")
        listed = "SELECT option_name, value, scope, scope_entry FROM lake.options() ORDER BY ALL"
        assert shared.ours.rows(listed) == shared.theirs.rows(listed)


def test_checkpoint_leaves_what_duckdbs_leaves(twins: tuple[Ours, Theirs]) -> None:
    ours, theirs = twins
    counts = "SELECT table_name, file_count, delete_file_count FROM ducklake_table_info('lake') ORDER BY 1"
    for program in twins:
        program.execute("CALL ducklake_set_option('lake', 'rewrite_delete_threshold', 0.3)")
        program.execute("CHECKPOINT")
    assert ours.rows(counts) == theirs.rows(counts)
    assert ours.rows("FROM t ORDER BY ALL") == theirs.rows("FROM t ORDER BY ALL")
    assert result_shape(ours, "CHECKPOINT lake") == result_shape(theirs, "CHECKPOINT lake")


# Words of ours, on a lake that DuckDB reads and writes


def test_duckdb_reads_restored_tables(shared: Shared) -> None:
    """At one version after the other, and goes on writing each."""
    script(
        shared.theirs,
        """
        CREATE TABLE t (k INTEGER, v VARCHAR);
        INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i);
        INSERT INTO t VALUES (1000, 'few');
        DELETE FROM t WHERE k < 50;
        ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7;
        UPDATE t SET v = 'u', n = 8 WHERE k BETWEEN 90 AND 99;
        ALTER TABLE t RENAME v TO w;
        ALTER TABLE t DROP COLUMN n;
        ALTER TABLE t ALTER k TYPE BIGINT;
        INSERT INTO t VALUES (5000000000, 'big')
        """,
    )
    newest = shared.last()
    for version in (1, 4, 6, 8, newest):
        ids = f"SELECT rowid, * FROM t AT (VERSION => {version}) ORDER BY ALL"
        expected = shared.theirs.rows(ids)
        shared.ours.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        assert shared.theirs.rows("SELECT rowid, * FROM t ORDER BY ALL") == expected
        first = shared.last() + 1
        shared.theirs.execute("INSERT INTO t (k) VALUES (1), (2)")
        shared.theirs.execute("UPDATE t SET k = k + 1 WHERE k = 2")
        shared.theirs.execute("DELETE FROM t WHERE k = 77")
        feed = f"ducklake_table_changes('lake', 'main', 't', {first}, {shared.last()})"
        changes = f"SELECT change_type, count(*) FROM {feed} GROUP BY 1"
        assert sorted(shared.ours.rows(changes)) == sorted(shared.theirs.rows(changes))
    assert_same_rows(shared, "t")


def test_duckdb_reads_on_after_optimize_and_vacuum(shared: Shared) -> None:
    script(shared.theirs, LAKE)
    expected = shared.theirs.rows("SELECT rowid, * FROM t ORDER BY ALL")
    shared.ours.execute("OPTIMIZE t")
    assert_same_rows(shared, "t")
    shared.ours.execute("VACUUM t RETAIN 0 HOURS")
    shared.ours.execute("VACUUM RETAIN 0 HOURS")
    assert shared.theirs.rows("SELECT rowid, * FROM t ORDER BY ALL") == expected
    shared.theirs.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    shared.theirs.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert_same_rows(shared, "t", "s.u")
