"""Alembic finds the lake's implementation, whatever a program imports first."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.thorough import quick

pytest.importorskip("alembic", minversion="1.18")

CONNECT = "import sqlalchemy; connection = sqlalchemy.create_engine('lake:///shop').connect()"
ALEMBIC = "from alembic.migration import MigrationContext"
DIALECT = "import sqlalchemy_lake"
FIND = "print(type(MigrationContext.configure(connection).impl).__name__)"


@pytest.mark.skipif(
    not entry_points(group="sqlalchemy.dialects", name="lake"), reason="entry points need an installed lakedbapi"
)
@pytest.mark.parametrize(
    "program",
    quick(2, [(CONNECT, ALEMBIC), (ALEMBIC, CONNECT), (DIALECT, ALEMBIC, CONNECT), (ALEMBIC, DIALECT, CONNECT)]),
)
def test_the_order_of_imports_does_not_matter(program: tuple[str, ...], tmp_path: Path) -> None:
    code = "\n".join([*program, FIND])
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert run.stdout == "LakeImpl\n", run.stderr


def test_connecting_does_not_import_alembic(tmp_path: Path) -> None:
    code = "import sys, sqlalchemy_lake, sqlalchemy_lake.dialect; print('alembic' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=110
    )
    assert run.stdout == "False\n", run.stderr
