"""Random programs end the same on a Delta table and in the model, with each way to keep and name its rows.

`LAKE_EXAMPLES`, `LAKE_SEED`, `LAKE_SHRINK` and `LAKE_LONG` as in `test_programs`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from compliance.model.delta_machine import DeltaPrograms, DeltaSetting
from compliance.model.test_programs import EXAMPLES, PHASES, SEED

SETTINGS = [
    DeltaSetting(),
    DeltaSetting(partitioned=True),
    DeltaSetting(mapping="name", feed=True),
    DeltaSetting(mapping="id", partitioned=True),
    DeltaSetting(vectors=False),
    DeltaSetting(vectors=False, mapping="name", partitioned=True),
    DeltaSetting(feed=True, partitioned=True),
    DeltaSetting(vectors=False, feed=True),
]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_programs_end_as_in_the_model(setting: DeltaSetting) -> None:
    machine = seed(SEED)(type("DeltaPrograms", (DeltaPrograms,), {"setting": setting}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(EXAMPLES // 2, 1),
            stateful_step_count=30,
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
