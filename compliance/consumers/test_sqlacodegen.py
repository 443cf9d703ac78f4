"""sqlacodegen writes models that work."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from compliance.consumers.conftest import tool

tool("sqlacodegen")


def test_generated_models_read_the_lake(url: str, engine: sa.engine.Engine) -> None:
    command = [sys.executable, "-c", "from sqlacodegen.cli import main; main()", url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stderr
    models: dict[str, Any] = {"__name__": "models"}
    exec(run.stdout, models)
    customer, orders = models["Customer"], models["Orders"]
    assert customer.__table__.comment == "who buys"
    assert orders.__table__.c.price.comment == "in euro"
    with Session(engine) as session:
        ada = session.get(customer, 1)
        assert sorted(order.id for order in ada.orders) == [1, 2]
        assert {order.id: order.box for order in ada.orders} == {1: {"w": 1, "h": 2}, 2: None}
