"""Processes that change one Delta table in an object store, at the same time."""

from __future__ import annotations

import threading
from pathlib import Path

import fsspec
import pytest

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.processes import LONG, run
from compliance.stores.servers import Store
from lakedbapi.storage.exclusive import put_if_absent, require

COUNT = 30 if LONG else 5
WRITERS = 8
NOW = "ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"


def test_one_writer_of_a_name_wins(store: Store) -> None:
    protocol, _, bucket = store.url.partition("://")
    filesystem = fsspec.filesystem(protocol, **store.options)
    require(filesystem, f"{store.url}/names")
    start = threading.Barrier(WRITERS)
    won: list[int] = []

    def write(number: int) -> None:
        start.wait()
        try:
            put_if_absent(filesystem, f"{store.url}/names/0", str(number).encode())
        except FileExistsError:
            return
        won.append(number)

    writers = [threading.Thread(target=write, args=[number]) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [str(number).encode() for number in won] == [filesystem.cat_file(f"{bucket}/names/0")]


@pytest.mark.timeout(600)
def test_writers_lose_no_row_and_no_version(store: Store, tmp_path: Path) -> None:
    scheme, _, bucket = store.url.partition("://")
    place = Place("delta", f"delta+{scheme}://{bucket}/w", "", f"{tmp_path}/notes/")
    Path(place.data_path).mkdir()
    with lakedbapi.connect(place.url, autocommit=True, storage_options=store.options) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER)")
        connection.execute("INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)")
        done = run("mixed", place, 4, COUNT, storage_options=store.options)
        rows = 400 + done.rows["insert"] - done.rows["delete"]
        counts = "SELECT count(*), count(DISTINCT id), sum(counter) FROM t"
        assert connection.execute(counts).fetchone() == (rows, rows, done.rows["update"])
        versions = connection.execute("SELECT snapshot_id FROM history('t') ORDER BY 1").fetchall()
        assert [id for (id,) in versions] == list(range(2 + done.changing))
        for sql in ("OPTIMIZE t", NOW, "CHECKPOINT t"):
            connection.execute(sql)
        removed = connection.execute("VACUUM t").fetchall()
        assert removed
        left = {path for path in store.find("w/t") if path.endswith(".parquet") and "_delta_log" not in path}
        assert left == {path for (path,) in connection.execute("SELECT path FROM files('t')").fetchall()}
        assert connection.execute(counts).fetchone() == (rows, rows, done.rows["update"])
