"""Loading a Delta table's file list next to deltalake, each time in a process of its own: from commits, and from a
checkpoint; and deleting rows one after another from a table of so many files.

    python benchmarks/delta_load.py [--files 300000] [--rounds 3]

A line shows the medians of wall and CPU seconds until all paths with their sizes are there, or until the rows are
gone, and the ratios (below 1: we are faster). Needs `make peers`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT))

from compliance.peers.peer import peers_python

PER_COMMIT = 100
TYPES = {"id": "long", "name": "string", "price": "double", "at": "timestamp", "p": "string"}
SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in TYPES.items()],
}
IMPORTS = """
import lakedbapi.formats.delta.catalog
from lakedbapi import formats
"""
OURS = """
snapshot = formats.get("delta").open({path!r}, {{}}, read_only=True, create=False).latest()
[schema] = snapshot.schemas().values()
[name] = snapshot.table_names(schema)
found = snapshot.files(snapshot.find_table(schema, name)).num_rows
"""
THEIRS = """
found = len(DeltaTable({path!r}).file_uris())
"""
OUR_PREPARED = """
import lakedbapi
connection = lakedbapi.connect("delta:///" + {path!r}, autocommit=True)
connection.execute("DELETE FROM t WHERE id = -100")
"""
THEIR_PREPARED = """
from deltalake import DeltaTable
table = DeltaTable({path!r})
table.delete("id = -100")
"""
OUR_DELETES = """
for key in range(1, 11):
    connection.execute(f"DELETE FROM t WHERE id = {-key}")
found = 10
"""
THEIR_DELETES = """
for key in range(1, 11):
    table.delete(f"id = {-key}")
found = 10
"""
TIMED = """
import resource, time
{imports}
start = time.perf_counter()
before = resource.getrusage(resource.RUSAGE_SELF)
{work}
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(found, time.perf_counter() - start, cpu)
"""


def add(number: int) -> dict[str, object]:
    bounds = {"id": number * 1000, "name": f"name {number:08}", "price": number / 2, "at": "2026-01-01T00:00:00.000Z"}
    stats = {"numRecords": 1000, "minValues": bounds, "maxValues": bounds, "nullCount": dict.fromkeys(bounds, 0)}
    partition = f"part {number % 100}"
    return {
        "path": f"p={partition.replace(' ', '%20')}/part-{number:08}-0e1f6cb0-5d9f-4f0f-8d67-3c1b0e8f0a11.parquet",
        "partitionValues": {"p": partition},
        "size": 123_456,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def make(log: Path, files: int) -> None:
    """A log of commits of `PER_COMMIT` files each. Only the first file is there: nothing reads the others."""
    log.mkdir(parents=True)
    (log.parent / "p=0").mkdir()
    rows = {"id": range(-1000, 0), "name": [""] * 1000, "price": [0.5] * 1000, "at": [datetime(2026, 1, 1)] * 1000}
    types = [("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
    first = log.parent / "p=0" / "first.parquet"
    pq.write_table(pa.table(rows, pa.schema(types)), first)
    bounds = {"numRecords": 1000, "minValues": {"id": -1000}, "maxValues": {"id": -1}, "nullCount": {"id": 0}}
    there = add(0) | {"path": "p=0/first.parquet", "partitionValues": {"p": "0"}, "stats": json.dumps(bounds)}
    there["size"] = first.stat().st_size
    metadata = {"id": "benchmark", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(SCHEMA)}
    metadata |= {"partitionColumns": ["p"], "configuration": {"delta.enableDeletionVectors": "true"}, "createdTime": 1}
    vectors = {name: ["deletionVectors"] for name in ("readerFeatures", "writerFeatures")}
    first = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **vectors}},
        {"metaData": metadata},
        {"add": there},
    ]
    commits = [first]
    for start in range(0, files, PER_COMMIT):
        adds = [{"add": add(number)} for number in range(start, min(start + PER_COMMIT, files))]
        commits.append([{"commitInfo": {"operation": "WRITE"}}, *adds])
    for version, actions in enumerate(commits):
        lines = (json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text("".join(lines))


def measured(python: Path, imports: str, work: str) -> tuple[float, float]:
    done = subprocess.run(
        [str(python), "-c", TIMED.format(imports=imports, work=work)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    _, wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


def compare(what: str, peers: Path, rounds: int, ours: tuple[str, str], theirs: tuple[str, str]) -> None:
    """Each side is what is prepared, and what is timed."""
    runs = [(measured(Path(sys.executable), *ours), measured(peers, *theirs)) for _ in range(rounds)]
    (wall, cpu), (their_wall, their_cpu) = (
        tuple(statistics.median(column) for column in zip(*side, strict=True)) for side in zip(*runs, strict=True)
    )
    print(
        f"{what:12} wall {wall:6.2f} s, deltalake {their_wall:6.2f} s: {wall / their_wall:.2f}   "
        f"CPU {cpu:6.2f} s, deltalake {their_cpu:6.2f} s: {cpu / their_cpu:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    peers = peers_python()
    if peers is None:
        sys.exit("deltalake is not installed: run 'make peers' or set LAKE_PEERS_PYTHON")
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "t", "_delta_log")
        make(log, arguments.files)
        path, rounds, deltalake = str(log.parent), arguments.rounds, "from deltalake import DeltaTable"
        loads = (IMPORTS, OURS.format(path=path)), (deltalake, THEIRS.format(path=path))
        compare("commits", peers, rounds, *loads)
        checkpoint = f"{deltalake}\nDeltaTable({path!r}).create_checkpoint()"
        subprocess.run([str(peers), "-c", checkpoint], check=True)
        compare("checkpoint", peers, rounds, *loads)
        ours = OUR_PREPARED.format(path=path), OUR_DELETES
        compare("10 DELETEs", peers, rounds, ours, (THEIR_PREPARED.format(path=path), THEIR_DELETES))


if __name__ == "__main__":
    main()
