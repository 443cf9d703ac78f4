"""Random programs end the same on an Iceberg table and in the model, with each way to keep its changes.

`LAKE_EXAMPLES`, `LAKE_SEED`, `LAKE_SHRINK` and `LAKE_LONG` as in `test_programs`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from compliance.model.iceberg_machine import IcebergPrograms, IcebergSetting
from compliance.model.test_programs import EXAMPLES, PHASES, SEED

SETTINGS = [
    IcebergSetting(version, mode, partitioned)
    for version in (2, 3)
    for mode in ("merge-on-read", "copy-on-write")
    for partitioned in (False, True)
]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_programs_end_as_in_the_model(setting: IcebergSetting) -> None:
    machine = seed(SEED)(type("IcebergPrograms", (IcebergPrograms,), {"setting": setting}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(EXAMPLES // 4, 1),
            stateful_step_count=30,
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
