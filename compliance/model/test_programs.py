"""Random programs end the same on a lake and in the model, on every catalog and with every way to keep changes.

`LAKE_EXAMPLES` programs a setting (default 4); with `LAKE_LONG=1` it is 500. They are the same in each run unless
`LAKE_SEED` is given. `LAKE_SHRINK=1` looks for the shortest program that fails, which takes minutes.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import Phase

from compliance.model.delta_machine import DeltaPrograms, DeltaSetting
from compliance.model.iceberg_machine import IcebergPrograms, IcebergSetting
from compliance.model.machine import Programs, Setting
from compliance.model.random_programs import RandomPrograms, run_programs

EXAMPLES = int(os.environ.get("LAKE_EXAMPLES", "500" if os.environ.get("LAKE_LONG") else "4"))
SEED = int(os.environ.get("LAKE_SEED", "0"))
PHASES = (Phase.generate, Phase.shrink) if os.environ.get("LAKE_SHRINK") else (Phase.generate,)

DUCKLAKE = [
    *(Setting("sqlite", inlining, mode) for inlining in (0, 10) for mode in ("auto", "merge-on-read", "copy-on-write")),
    Setting("postgresql", 10, "merge-on-read"),
    Setting("postgresql", 0, "auto"),
    Setting("duckdb", 10, "auto"),
]
DELTA = [
    DeltaSetting(),
    DeltaSetting(partitioned=True),
    DeltaSetting(mapping="name", feed=True),
    DeltaSetting(mapping="id", partitioned=True),
    DeltaSetting(vectors=False),
    DeltaSetting(vectors=False, mapping="name", partitioned=True),
    DeltaSetting(feed=True, partitioned=True),
    DeltaSetting(vectors=False, feed=True),
]
ICEBERG = [
    IcebergSetting(version, mode, partitioned)
    for version in (2, 3)
    for mode in ("merge-on-read", "copy-on-write")
    for partitioned in (False, True)
]

pytestmark = pytest.mark.timeout(0)


@pytest.mark.parametrize("setting", DUCKLAKE, ids=str)
def test_programs_on_ducklake_end_as_in_the_model(setting: Setting) -> None:
    _run(Programs, setting, EXAMPLES if setting.catalog == "sqlite" else EXAMPLES // 4)


@pytest.mark.parametrize("setting", DELTA, ids=str)
def test_programs_on_delta_end_as_in_the_model(setting: DeltaSetting) -> None:
    _run(DeltaPrograms, setting, EXAMPLES // 2)


@pytest.mark.parametrize("setting", ICEBERG, ids=str)
def test_programs_on_iceberg_end_as_in_the_model(setting: IcebergSetting) -> None:
    _run(IcebergPrograms, setting, EXAMPLES // 4)


def _run(programs: type[RandomPrograms], setting: object, count: int) -> None:
    run_programs(programs, setting, count=max(count, 1), first=SEED, phases=PHASES)
