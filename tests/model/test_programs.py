"""Random programs end the same on a lake and in the model; `compliance/model` runs more of them on more catalogs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from compliance.model.delta_machine import DeltaPrograms, DeltaSetting
from compliance.model.machine import Programs, Setting


@pytest.mark.parametrize("setting", [Setting(inlining=0, mode="merge-on-read"), Setting(mode="copy-on-write")], ids=str)
def test_programs_end_as_in_the_model(setting: Setting) -> None:
    machine = seed(1)(type("Programs", (Programs,), {"setting": setting}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=3,
            stateful_step_count=20,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    "setting", [DeltaSetting(mapping="name", feed=True), DeltaSetting(vectors=False, partitioned=True)], ids=str
)
def test_programs_on_delta_end_as_in_the_model(setting: DeltaSetting) -> None:
    machine = seed(1)(type("DeltaPrograms", (DeltaPrograms,), {"setting": setting}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=1,
            stateful_step_count=20,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
