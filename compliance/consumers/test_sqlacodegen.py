"""sqlacodegen writes models that work."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from compliance.consumers.conftest import tool

tool("sqlacodegen")


def test_generated_models_read_the_lake(
    url: str, engine: sa.engine.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", "from sqlacodegen.cli import main; main()", url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stderr
    # sqlacodegen does not import the types of a STRUCT's fields.
    (tmp_path / "generated_models.py").write_text(f"from sqlalchemy import INTEGER\n{run.stdout}")
    monkeypatch.syspath_prepend(tmp_path)
    models = import_module("generated_models")
    customer, orders = models.Customer, models.Orders
    assert customer.__table__.comment == "who buys"
    assert orders.__table__.c.price.comment == "in euro"
    with Session(engine) as session:
        ada = session.get(customer, 1)
        assert sorted(order.id for order in ada.orders) == [1, 2]
        assert {order.id: order.box for order in ada.orders} == {1: {"w": 1, "h": 2}, 2: None}
