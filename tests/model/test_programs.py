"""Random programs end the same on a lake and in the model; `compliance/model` runs more of them on more catalogs."""

from __future__ import annotations

import pytest

from compliance.model.delta_machine import DeltaPrograms, DeltaSetting
from compliance.model.machine import Programs, Setting
from compliance.model.random_programs import run_programs


@pytest.mark.parametrize("setting", [Setting(inlining=0, mode="merge-on-read"), Setting(mode="copy-on-write")], ids=str)
def test_programs_end_as_in_the_model(setting: Setting) -> None:
    run_programs(Programs, setting, count=3, steps=20, first=1)


@pytest.mark.parametrize(
    "setting", [DeltaSetting(mapping="name", feed=True), DeltaSetting(vectors=False, partitioned=True)], ids=str
)
def test_programs_on_delta_end_as_in_the_model(setting: DeltaSetting) -> None:
    run_programs(DeltaPrograms, setting, count=1, steps=20, first=1)
