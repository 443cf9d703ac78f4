"""The table of formats says what their capabilities say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import lakedbapi
from lakedbapi.formats.base import Capabilities
from tests.formats.kinds import DELTA, DUCKLAKE, ICEBERG, capabilities
from tests.formats.needs import need_pyiceberg

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"

ROWS: dict[str, Callable[[Capabilities], bool | str]] = {
    "`INSERT`": lambda c: c.inserts,
    "`DELETE`, `UPDATE`, `MERGE`, `TRUNCATE`, `ON CONFLICT`": lambda c: c.row_changes,
    "Rows deleted without rewriting their file": lambda c: c.delete_vectors,
    "`CREATE`, `ALTER` and `DROP TABLE`, `COMMENT`": lambda c: c.ddl,
    "Partition transforms of new tables": lambda c: ", ".join(sorted(c.partition_transforms)) or "none",
    "Identity columns": lambda c: c.identity_columns,
    "Views can be made": lambda c: c.views or (c.way_out_of_views is not None and "in REST catalogs"),
    "Macros": lambda c: c.macros,
    "One commit for changes of several tables": lambda c: c.multi_table_commit,
    "Versions are of": lambda c: "each table" if c.table_versions else "the catalog",
    "Time travel by version": lambda c: c.travel_by_version,
    "Time travel by timestamp": lambda c: c.travel_by_timestamp,
    "Branches and tags": lambda c: c.travel_by_ref,
    "Change feed": lambda c: c.change_feed,
    "Rows have ids that last": lambda c: c.row_ids,
    "`OPTIMIZE`, `VACUUM`, `CHECKPOINT`": lambda c: c.maintenance,
    "Files of other programs become data files": lambda c: c.name_mapping,
}


def test_the_table_is_that_of_the_capabilities(tmp_path: Path) -> None:
    need_pyiceberg()
    found = []
    for url in (DUCKLAKE.url, DELTA.url, ICEBERG[-1].url, "hudi:///{}"):
        with lakedbapi.connect(url.format(tmp_path)) as connection:
            found.append(capabilities(connection))
    first = PAGE.read_text().split("\n\n")[2].splitlines()
    cells = [re.split(r"\s*\|\s*", line.strip("| ")) for line in first[3:]]
    shown = {name: values for name, *values in cells}
    expected = {name: [_word(of(each)) for each in found] for name, of in ROWS.items()}
    assert first[0] == "| | DuckLake | Delta Lake | Apache Iceberg | Apache Hudi |"
    assert shown == expected


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"
