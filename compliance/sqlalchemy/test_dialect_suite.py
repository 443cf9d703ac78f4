"""SQLAlchemy's own dialect suite, on each SQLAlchemy line and each format: it passes whole, and passes much.

The suite runs in a process of its own, since its pytest plugin takes the whole run over. The environments of the older
lines are named by LAKE_SA20_PYTHON and LAKE_SA14_PYTHON (`make compliance` makes them).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).parent / "suite"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("line", "interpreter", "format", "least"),
    [
        ("2.1", sys.executable, "ducklake", 1500),
        ("2.0", os.environ.get("LAKE_SA20_PYTHON"), "ducklake", 1300),
        ("1.4", os.environ.get("LAKE_SA14_PYTHON"), "ducklake", 400),
        ("2.1", sys.executable, "delta", 1300),
        ("2.1", sys.executable, "iceberg", 1000),
    ],
)
def test_sqlalchemys_dialect_suite_passes(line: str, interpreter: str | None, format: str, least: int) -> None:
    if interpreter is None:
        reason = f"no environment with SQLAlchemy {line} is named: run `make compliance`"
        if os.environ.get("LAKE_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LAKE_SUITE_FORMAT": format}
    environment.pop("PYTEST_XDIST_WORKER", None)
    version = subprocess.run(
        [interpreter, "-c", "import sqlalchemy; print(sqlalchemy.__version__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert version.startswith(line)
    run = subprocess.run(
        [interpreter, "-W", "ignore", "-m", "pytest", "-rfE"],
        cwd=SUITE,
        env=environment,
        capture_output=True,
        text=True,
    )
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed|errors?|skipped)", run.stdout)}
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5_000:]
    assert counts["passed"] >= least
