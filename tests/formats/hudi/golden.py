"""Which golden tables there are, and ways to change a copy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import zipfile
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "hudi"

TRIPS = "quickstart_trips_table-mor-avro-v8_trips_8i3u1d"
TRIPS_DELETED = "quickstart_trips_table-mor-avro-v6_trips_8i3d"
EMPTY = "sample_table-cow-v6_empty"
COW = "sample_table-cow-v6_nonpartitioned"
OVERWRITTEN = "sample_table-cow-v6_simplekeygen_nonhivestyle_overwritetable"
TRANSACTIONS = "sample_table-cow-v9_txns_simple_meta"
TIME_BASED = "sample_table-mor-avro-v9_timebasedkeygen_nonhivestyle"
MOR_TRANSACTIONS = "sample_table-mor-avro-v9_txns_simple_meta"
MOR = "sample_table-mor-parquet-v6_nonpartitioned"
ROLLED_BACK = "sample_table-mor-parquet-v6_nonpartitioned_rollback"


def unpack(name: str, target: Path) -> Path:
    """The directory of a table, unpacked below `target`. Without the tables, or hudi-rs, the test is skipped."""
    for is_there, reason in (
        (GOLDEN.is_dir(), "the golden tables are not next to the project"),
        (importlib.util.find_spec("hudi"), "the package hudi is not installed: pip install 'lakedbapi[hudi]'"),
    ):
        if not is_there:
            if os.environ.get("LAKE_CI"):
                pytest.fail(reason)
            pytest.skip(reason)
    if not target.exists():
        with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
            archive.extractall(target)
        shutil.rmtree(target / "__MACOSX", ignore_errors=True)
    (table,) = target.iterdir()
    return table


def set_properties(table: Path, *removed: str, **values: str) -> None:
    """Change `hoodie.properties`: `removed` keys go, `values` (with `__` for `.`) are added in place of old ones."""
    path = table / ".hoodie" / "hoodie.properties"
    values = {name.replace("__", "."): value for name, value in values.items()}
    gone = (*removed, *values)
    kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in gone]
    path.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in values.items())]) + "\n")


def log_file(table: Path, pattern: str = "**/.*.log.*") -> Path:
    (path,) = table.glob(pattern)
    return path
