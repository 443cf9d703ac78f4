"""Two transactions from one snapshot: what commutes succeeds and counts, what does not is a ConflictError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from sqlalchemy import delete

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.errors import ConflictError
from lakedbapi.model.catalog import Constraint, MacroBody, MacroInfo, SchemaInfo, ViewInfo, provisional_id
from lakedbapi.model.changes import Changes, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.types import Identity, Schema
from tests.formats.ducklake.writing import Lake, arrow, column, open_catalog, row_changes, tables

Stage = Callable[[Lake], Changes]


@pytest.fixture
def other(lake: Lake, place: Place) -> Iterator[Lake]:
    """Another client of `lake`, which has table t: data file 0 with i = 0..19, data file 1 with i = 20..39."""
    lake.create("t", column("i", "int32"))
    lake.insert("t", *((i,) for i in range(20)))
    lake.insert("t", *((i,) for i in range(20, 40)))
    catalog = open_catalog(place, data_inlining_row_limit="0")
    yield Lake(catalog, lake.engine)
    catalog.close()


def insert(lake: Lake) -> Changes:
    table = lake.table("t")
    return row_changes(table, files=lake.written(table, arrow(table, [(100,)])))


def delete_rows(*positions: int, file: int = 0) -> Stage:
    return lambda lake: lake.deletion("t", {file: positions})


def update(lake: Lake) -> Changes:
    return lake.update("t", {0: [5]}, [(-5, 5)])


def truncate(lake: Lake) -> Changes:
    return row_changes(lake.table("t"), removed=frozenset({0, 1}))


def rewrite(lake: Lake) -> Changes:
    """Copy-on-write delete of i = 0 in file 0."""
    table = lake.table("t")
    rows = arrow(table, [(i,) for i in range(1, 20)]).append_column("_lake_row_id", pa.array(range(1, 20)))
    return row_changes(
        table, files=lake.written(table, rows, row_ids=True), removed=frozenset({0}), rewritten=frozenset({0})
    )


def drop(lake: Lake) -> Changes:
    return Changes(tables={lake.table("t").id: None})


def rename(lake: Lake) -> Changes:
    return Changes(tables=tables(replace(lake.table("t"), name="u")))


def add_column(lake: Lake) -> Changes:
    table = lake.table("t")
    return Changes(tables=tables(replace(table, schema=Schema((*table.schema.fields, column("n", "int32"))))))


def comment(lake: Lake) -> Changes:
    return Changes(tables=tables(replace(lake.table("t"), comment="c")))


def not_null(lake: Lake) -> Changes:
    table = lake.table("t")
    return Changes(tables=tables(replace(table, schema=Schema((replace(table.schema.fields[0], nullable=False),)))))


def check(lake: Lake) -> Changes:
    return Changes(tables=tables(replace(lake.table("t"), constraints=(Constraint("check", "c", expression="i > 0"),))))


def create(name: str) -> Stage:
    return lambda lake: Changes(tables=tables(lake.new_table(name, column("i", "int32"))))


def create_view(name: str) -> Stage:
    view = ViewInfo(provisional_id(), 0, name, "SELECT 1")
    return lambda lake: Changes(views={view.id: view})


FIVE, SIX = delete_rows(5), delete_rows(6)
ELSEWHERE = delete_rows(3, file=1)


@pytest.mark.parametrize(
    ("theirs", "mine", "count"),
    [
        (insert, insert, 42),
        (insert, FIVE, 40),
        (FIVE, insert, 40),
        (FIVE, SIX, 38),
        (FIVE, ELSEWHERE, 38),
        (update, ELSEWHERE, 39),
        (update, SIX, 39),
        (insert, truncate, 1),
        (truncate, insert, 1),
        (insert, rewrite, 40),
        (ELSEWHERE, rewrite, 38),
        (create("x"), create("y"), 40),
        (insert, comment, 41),
        (comment, insert, 41),
        (not_null, FIVE, None),
        (FIVE, not_null, 39),
        (add_column, drop, None),
        (insert, add_column, 41),
        (rename, FIVE, 39),
        (create_view("v"), insert, 41),
    ],
)
def test_what_commutes(lake: Lake, other: Lake, theirs: Stage, mine: Stage, count: int | None) -> None:
    lake.pin()
    changes = mine(lake)
    other.commit(theirs(other))
    if (theirs, mine) == (not_null, FIVE):
        with pytest.raises(ConflictError):
            lake.commit(changes)
        return
    lake.commit(changes)
    if count is not None:
        assert lake.count("u" if theirs is rename else "t") == count


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (FIVE, FIVE),
        (update, FIVE),
        (update, update),
        (FIVE, truncate),
        (truncate, FIVE),
        (truncate, truncate),
        (FIVE, rewrite),
        (rewrite, FIVE),
        (rewrite, rewrite),
        (drop, insert),
        (drop, FIVE),
        (drop, rename),
        (drop, drop),
        (rename, rename),
        (add_column, insert),
        (add_column, add_column),
        (add_column, FIVE),
        (check, insert),
        (insert, not_null),
        (insert, check),
        (create("x"), create("X")),
        (create("x"), create_view("x")),
        (create_view("x"), create("x")),
        (create("u"), rename),
    ],
)
def test_what_conflicts(lake: Lake, other: Lake, theirs: Stage, mine: Stage) -> None:
    lake.pin()
    changes = mine(lake)
    other.commit(theirs(other))
    before = lake.catalog.latest().id
    with pytest.raises(ConflictError) as error:
        lake.commit(changes)
    assert error.value.retryable
    assert lake.catalog.latest().id == before


@pytest.mark.parametrize(
    "compaction",
    [
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    ],
)
def test_compaction_of_a_touched_file_conflicts(
    lake: Lake, other: Lake, place: Place, peer: Peer, compaction: str
) -> None:
    other.delete("t", {0: [0]}) if "rewrite" in compaction else None
    lake.pin()
    changes = delete_rows(5)(lake)
    inlining = Lake(open_catalog(place), lake.engine)
    inlined = delete_rows(6)(inlining)
    peer.attach(place.location)
    peer.execute(compaction)
    for client, staged in ((lake, changes), (inlining, inlined)):
        with pytest.raises(ConflictError):
            client.commit(staged)
    appended = insert(lake)
    lake.commit(appended)
    assert lake.count() == peer.value("SELECT count(*) FROM t")


def test_an_expired_snapshot_conflicts(lake: Lake, other: Lake) -> None:
    lake.pin()
    changes = insert(lake)
    other.commit(insert(other))
    snapshots = lake.catalog.backend.tables.snapshot
    with lake.catalog.backend.write() as connection:
        connection.execute(delete(snapshots).where(snapshots.c.snapshot_id == lake.base.id))
    with pytest.raises(ConflictError, match="expired"):
        lake.commit(changes)


def test_a_file_delete_and_an_inlined_delete_of_one_row_conflict(lake: Lake, other: Lake, place: Place) -> None:
    inlining = Lake(open_catalog(place), lake.engine)
    lake.pin()
    mine, apart = FIVE(lake), SIX(lake)
    inlining.commit(FIVE(inlining))
    with pytest.raises(ConflictError):
        lake.commit(mine)
    lake.commit(apart)
    assert lake.count() == 38


def test_the_end_of_a_file_and_an_inlined_delete_in_it_conflict(lake: Lake, other: Lake, place: Place) -> None:
    """The file's live rows may have been copied elsewhere, and that one with them."""
    inlining = Lake(open_catalog(place), lake.engine)
    lake.pin()
    mine = row_changes(lake.table("t"), removed=frozenset({0}))
    inlining.commit(FIVE(inlining))
    with pytest.raises(ConflictError):
        lake.commit(mine)


def test_inlined_rows_can_be_ended_once(inlining: Lake, place: Place) -> None:
    lake, other = inlining, Lake(open_catalog(place), inlining.engine)
    table = lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,), (2,), (3,))
    base = lake.base
    (group,) = base.row_groups(table)
    one, two = (row_changes(table, deleted_rows={group.key: DeleteVector.of([n])}) for n in (0, 1))
    new = StagedRows(arrow(table, [(20,)]), pa.array([1]))
    other.pin()
    other.commit(one)
    lake.commit(replace(two, rows={table.id: replace(two.rows[table.id], rows=(new,))}))
    assert lake.count() == 2
    with pytest.raises(ConflictError):
        lake.catalog.commit(base, two)


def test_flushed_rows_conflict(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    table = lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,), (2,), (3,))
    (group,) = lake.base.row_groups(table)
    peer.attach(place.location)
    peer.execute("CALL ducklake_flush_inlined_data('lake')")
    with pytest.raises(ConflictError):
        lake.commit(row_changes(table, deleted_rows={group.key: DeleteVector.of([0])}))


def test_schemas_conflict_with_what_is_created_in_them(lake: Lake, other: Lake) -> None:
    schema = SchemaInfo(provisional_id(), "s")
    lake.commit(Changes(schemas={schema.id: schema}))
    id = next(id for id, schema in lake.base.schemas().items() if schema.name == "s")
    other.pin()
    inside = replace(lake.new_table("x", column("i", "int32")), schema_id=id)
    dropped = Changes(schemas={id: None})
    other.commit(Changes(tables=tables(inside)))
    with pytest.raises(ConflictError, match="x"):
        lake.commit(dropped)
    table_id = next(id for id, table in other.base.tables().items() if table.name == "x")
    lake.pin()
    other.commit(Changes(schemas={id: None}, tables={table_id: None}))
    with pytest.raises(ConflictError, match="dropped"):
        lake.commit(Changes(tables=tables(replace(lake.new_table("y", column("i", "int32")), schema_id=id))))


def test_schemas_conflict_with_macros_that_are_created_in_them(lake: Lake, other: Lake) -> None:
    schema = SchemaInfo(provisional_id(), "s")
    lake.commit(Changes(schemas={schema.id: schema}))
    id = next(id for id, schema in lake.base.schemas().items() if schema.name == "s")
    macro = MacroInfo(provisional_id(), id, "m", False, (MacroBody("1"),))
    dropped = Changes(schemas={id: None})
    other.pin()
    other.commit(Changes(macros={macro.id: macro}))
    with pytest.raises(ConflictError, match="macro m"):
        lake.commit(dropped)
    (made,) = other.base.macros()
    lake.pin()
    other.commit(Changes(schemas={id: None}, macros={made: None}))
    again = MacroInfo(provisional_id(), id, "n", False, (MacroBody("1"),))
    with pytest.raises(ConflictError, match="dropped"):
        lake.commit(Changes(macros={again.id: again}))


def test_identity_values_are_given_out_once(lake: Lake, other: Lake) -> None:
    table = lake.create("k", column("id", "int64", identity=Identity()))
    other.pin()

    def assign(client: Lake, value: int) -> Changes:
        rows = row_changes(table, files=client.written(table, arrow(table, [(value,)])))
        return replace(rows, identities={(table.id, "id"): value})

    mine = assign(lake, 1)
    other.commit(assign(other, 1))
    with pytest.raises(ConflictError, match="identity"):
        lake.commit(mine)
    lake.pin()
    lake.commit(assign(lake, 2))
    assert lake.catalog.next_identity(lake.base, table, "id") == 3


def test_deletes_rebased_past_another_snapshot_keep_history_exact(
    lake: Lake, other: Lake, peer: Peer, place: Place
) -> None:
    lake.delete("t", {0: [1]})
    other.pin()
    changes = SIX(lake)
    other.create("x", column("i", "int32"))
    version = other.base.id
    lake.commit(changes)
    peer.attach(place.location)
    counts = [peer.value(f"SELECT count(*) FROM t AT (VERSION => {version + n})") for n in (0, 1)]
    assert counts == [39, 38]


def test_a_failed_commit_leaves_no_delete_file(lake: Lake, other: Lake, place: Place) -> None:
    lake.pin()
    changes = FIVE(lake)
    other.commit(FIVE(other))
    files = set(place.data_files)
    with pytest.raises(ConflictError):
        lake.commit(changes)
    assert set(place.data_files) == files
