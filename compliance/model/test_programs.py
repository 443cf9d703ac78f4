"""Random programs end the same on a lake and in the model, on every catalog and with every way to keep changes.

`LAKE_EXAMPLES` programs a setting (default 4); with `LAKE_LONG=1` it is 500. They are the same in each run unless
`LAKE_SEED` is given. `LAKE_SHRINK=1` looks for the shortest program that fails, which takes minutes.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from compliance.model.machine import Programs, Setting

EXAMPLES = int(os.environ.get("LAKE_EXAMPLES", "500" if os.environ.get("LAKE_LONG") else "4"))
SEED = int(os.environ.get("LAKE_SEED", "0"))
PHASES = [Phase.generate, Phase.shrink] if os.environ.get("LAKE_SHRINK") else [Phase.generate]

SETTINGS = [
    *(Setting("sqlite", inlining, mode) for inlining in (0, 10) for mode in ("auto", "merge-on-read", "copy-on-write")),
    Setting("postgresql", 10, "merge-on-read"),
    Setting("postgresql", 0, "auto"),
    Setting("duckdb", 10, "auto"),
]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.catalog}-{s.inlining}-{s.mode}")
def test_programs_end_as_in_the_model(setting: Setting) -> None:
    machine = seed(SEED)(type("Programs", (Programs,), {"setting": setting}))
    examples = EXAMPLES if setting.catalog == "sqlite" else max(EXAMPLES // 4, 1)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
