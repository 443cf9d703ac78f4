"""ORM sessions: 10,000 new objects and 1,000 changed ones, each flushed and committed once.

    python benchmarks/orm.py --peer PYTHON [--rounds 3]

Compared with duckdb-sqlalchemy on a plain DuckDB file and on a DuckLake through DuckDB's own extension, which `PYTHON`
must have: `pip install duckdb-sqlalchemy duckdb==1.5.5 duckdb-extension-ducklake==1.5.5
duckdb-extension-sqlite-scanner==1.5.5`. Every round is a new process on a new lake or file; the three take turns. Lines
show medians, and how ours compare (below 1: we are faster).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.pool import StaticPool

ITEMS = 10_000
CHANGED = 1_000
OURS, FILE, DUCKLAKE = "lakedbapi", "duckdb file", "ducklake extension"

Base: Any = declarative_base()


class Item(Base):
    __tablename__ = "items"

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=False)
    name = sa.Column(sa.String)
    amount = sa.Column(sa.Numeric(9, 2))


def lake_engine(path: Path) -> sa.engine.Engine:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from sqlalchemy.dialects import registry

    registry.register("lake", "sqlalchemy_lake.dialect", "LakeDialect")
    return sa.create_engine(f"lake:///{path / 'lake'}")


def file_engine(path: Path) -> sa.engine.Engine:
    return sa.create_engine(f"duckdb:///{path / 'file.duckdb'}")


def ducklake_engine(path: Path) -> sa.engine.Engine:
    config = {"allow_unsigned_extensions": "true"}
    engine = sa.create_engine("duckdb:///:memory:", poolclass=StaticPool, connect_args={"config": config})
    extensions = sorted(Path(sysconfig.get_path("purelib")).glob("duckdb_extension_*/extensions/*/*.duckdb_extension"))
    with engine.begin() as connection:
        for extension in extensions:
            connection.exec_driver_sql(f"LOAD '{extension}'")
        data = path / "data"
        connection.exec_driver_sql(f"ATTACH 'ducklake:sqlite:{path / 'meta.sqlite'}' AS lake (DATA_PATH '{data}')")
        connection.exec_driver_sql("USE lake")
    return engine


ENGINES: dict[str, Callable[[Path], sa.engine.Engine]] = {
    OURS: lake_engine,
    FILE: file_engine,
    DUCKLAKE: ducklake_engine,
}


def measure(engine: sa.engine.Engine) -> dict[str, float]:
    """Seconds of each case. The extension refuses tables with keys, so nobody gets one."""
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE items (id INTEGER, name VARCHAR, amount DECIMAL(9, 2))"))
    timings: dict[str, float] = {}
    start = time.perf_counter()
    with Session(engine) as session:
        session.add_all([Item(id=n, name=f"item {n}", amount=n % 1000) for n in range(ITEMS)])
        session.commit()
    timings[f"insert {ITEMS:,} objects"] = time.perf_counter() - start
    start = time.perf_counter()
    with Session(engine) as session:
        for item in session.query(Item).filter(Item.id < CHANGED):
            item.amount = item.amount + 1
        session.commit()
    timings[f"update {CHANGED:,} objects"] = time.perf_counter() - start
    expected = sum(n % 1000 for n in range(ITEMS)) + CHANGED
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*), sum(amount) FROM items")).one() == (ITEMS, expected)
    return timings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the Python with duckdb-sqlalchemy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        with tempfile.TemporaryDirectory() as path:
            engine = ENGINES[arguments.run](Path(path))
            print(json.dumps(measure(engine)))
            engine.dispose()
        return
    if not arguments.peer:
        parser.error("--peer PYTHON is missing")
    report([{name: _run(name, arguments.peer) for name in ENGINES} for _ in range(arguments.rounds)])


def _run(name: str, peer: str) -> dict[str, float]:
    python = sys.executable if name == OURS else peer
    run = subprocess.run([python, __file__, "--run", name], capture_output=True, text=True, timeout=600)
    if run.returncode:
        raise SystemExit(f"{name}:\n{run.stderr}")
    timings: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return timings


def report(rounds: list[dict[str, dict[str, float]]]) -> None:
    for case in rounds[0][OURS]:
        seconds = {name: statistics.median(one[name][case] for one in rounds) for name in ENGINES}
        shown = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        ratios = ", ".join(f"{seconds[OURS] / seconds[name]:.2f} of {name}" for name in (FILE, DUCKLAKE))
        print(f"{case}: {shown}; ours is {ratios}")


if __name__ == "__main__":
    main()
