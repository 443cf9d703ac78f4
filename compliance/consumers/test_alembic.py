"""Alembic's command line in a project of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa

from compliance.consumers.conftest import tool

tool("alembic")

MODEL = """
import sqlalchemy as sa
metadata = sa.MetaData()
sa.Table("customer", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
         sa.Column("name", sa.String, nullable=False), sa.Column("city", sa.String, server_default="Kiel"),
         comment="who buys")
sa.Table("invoice", metadata, sa.Column("id", sa.BigInteger, primary_key=True),
         sa.Column("customer_id", sa.ForeignKey("customer.id")), sa.Column("total", sa.Numeric(12, 2)))
def mine(name, kind, parents):
    return kind != "table" or name in metadata.tables
"""


def test_a_project_from_init_to_an_empty_check(url: str, engine: sa.engine.Engine, tmp_path: Path) -> None:
    def alembic(*arguments: str) -> str:
        command = [sys.executable, "-m", "alembic", *arguments]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    alembic("init", "migrations")
    (tmp_path / "model.py").write_text(MODEL)
    ini = tmp_path / "alembic.ini"
    ini.write_text(ini.read_text().replace("driver://user:pass@localhost/dbname", url))
    env = tmp_path / "migrations" / "env.py"
    text = env.read_text().replace("target_metadata = None", "from model import metadata as target_metadata, mine")
    env.write_text(
        text.replace("target_metadata=target_metadata", "target_metadata=target_metadata, include_name=mine")
    )

    alembic("revision", "--autogenerate", "-m", "invoices")
    alembic("upgrade", "head")
    assert sa.inspect(engine).has_table("invoice")
    assert "No new upgrade operations detected" in alembic("check")
    alembic("downgrade", "base")
    assert not sa.inspect(engine).has_table("invoice")
