"""Processes that change a Delta table while others maintain it, or are killed while they do; on a disk and in S3."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from werkzeug.serving import make_server

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.processes import LONG, Acknowledged, Running, lake, run, value

COUNT = 60 if LONG else 10
KILLS = 60 if LONG else 10
TABLE = "CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER)"
ROWS = "INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)"
NOW = "ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 1 minute')"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("delta", f"delta:///{tmp_path}/lake", "", f"{tmp_path}/lake/")


def operations(place: Place) -> list[str]:
    log = sorted(Path(place.data_path, "t", "_delta_log").glob("[0-9]*.json"))
    assert [int(path.stem) for path in log] == list(range(len(log)))
    return [json.loads(path.read_text().splitlines()[0])["commitInfo"]["operation"] for path in log]


@pytest.mark.timeout(600)
def test_changes_and_maintenance_go_together(place: Place) -> None:
    """Rows that were deleted do not come back, updates are not lost, and nothing is there twice."""
    lake(place, TABLE, ROWS, NOW)
    keeper = Running("maintain", place, 9, 1_000_000)
    done = run("mixed", place, 3, COUNT)
    time.sleep(0.5)
    assert keeper.process.is_alive(), keeper.failure
    keeper.kill()
    rows = 400 + done.rows["insert"] - done.rows["delete"]
    assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
    assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    assert {"OPTIMIZE", "REORG"} <= set(operations(place))


@pytest.mark.timeout(600)
def test_a_killed_maintenance_harms_nothing(place: Place) -> None:
    lake(place, TABLE, ROWS, NOW)
    moments = random.Random(2)
    done = Acknowledged()
    for kill in range(KILLS):
        changes = Running("mixed", place, kill, 3)
        keeper = Running("maintain", place, kill, 1_000_000)
        keeper.await_statements(1)
        time.sleep(moments.uniform(0, 0.3))
        keeper.kill()
        assert not keeper.failure
        changes.process.join()
        assert changes.process.exitcode == 0, changes.failure
        done.add(changes.acknowledged)
        rows = 400 + done.rows["insert"] - done.rows["delete"]
        assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
        assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    made = Counter(operations(place))
    assert made["WRITE"] + made["UPDATE"] + made["DELETE"] == 1 + done.changing
    lake(place, "OPTIMIZE t", "VACUUM t", "CHECKPOINT t")
    assert value(place, "SELECT count(*) FROM t") == rows


Options = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def s3() -> Iterator[Options]:
    """What to connect with to an S3 server that has the bucket `lake`."""
    moto = pytest.importorskip("moto.server")
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        with lock:  # Its conditional puts look first and write then.
            return application(environ, start_response)

    running = make_server("127.0.0.1", 0, answer, threaded=True)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    options = {"key": "a", "secret": "b", "endpoint_url": f"http://127.0.0.1:{running.server_port}"}
    fsspec.filesystem("s3", **options).mkdir("lake")
    yield {"storage_options": options}
    running.shutdown()


@pytest.mark.timeout(600)
def test_writers_in_s3_lose_no_row_and_no_version(s3: Options, tmp_path: Path) -> None:
    place = Place("delta", "delta+s3://lake/w", "", f"{tmp_path}/notes/")
    Path(place.data_path).mkdir()
    with lakedbapi.connect(place.url, autocommit=True, **s3) as connection:
        for sql in (TABLE, ROWS):
            connection.execute(sql)
        done = run("mixed", place, 4, COUNT // 2, **s3)
        rows = 400 + done.rows["insert"] - done.rows["delete"]
        counts = "SELECT count(*), count(DISTINCT id), sum(counter) FROM t"
        assert connection.execute(counts).fetchone() == (rows, rows, done.rows["update"])
        versions = connection.execute("SELECT snapshot_id FROM history('t') ORDER BY 1").fetchall()
        assert [id for (id,) in versions] == list(range(2 + done.changing))
        for sql in ("OPTIMIZE t", NOW.replace("1 minute", "0 seconds"), "CHECKPOINT t"):
            connection.execute(sql)
        removed = connection.execute("VACUUM t").fetchall()
        left = fsspec.filesystem("s3", **s3["storage_options"]).find("lake/w/t")
        assert removed
        assert {path for path in left if path.endswith(".parquet") and "_delta_log" not in path} == {
            path.removeprefix("s3://") for (path,) in connection.execute("SELECT path FROM files('t')").fetchall()
        }
        assert connection.execute(counts).fetchone() == (rows, rows, done.rows["update"])
