"""Tables that other programs wrote are read as their writers, and independent readers, say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import DataError, NotSupportedError, OperationalError
from tests.engines import needs_duckdb_2
from tests.formats.delta.golden import digest, expected

Golden = Callable[[str], Path]

REFUSED = {
    "g-canonicalized-paths-normal-a": (DataError, "no schemaString"),
    "g-canonicalized-paths-special-a": (DataError, "no schemaString"),
    "g-corrupted-last-checkpoint": (DataError, "no schemaString"),
    "g-update-deleted-directory": (DataError, "no schemaString"),
    "g-deltalog-state-reconstruction-from-checkpoint-missing-protocol": (DataError, "no schemaString"),
    "g-deltalog-state-reconstruction-without-metadata": (DataError, "no metaData action"),
    "g-data-reader-absolute-paths-escaped-chars": (DataError, "no metaData action"),
    "g-deltalog-invalid-protocol-version": (NotSupportedError, "reader of version 99"),
    "r-simple_table_features": (NotSupportedError, "reader of version 5"),
    "k-catalog-owned-preview": (NotSupportedError, "catalogManaged"),
    "g-versions-not-contiguous": (OperationalError, "version 1 is missing"),
}
"""Tables that cannot be read, and why."""
COUNTED = {
    "s-table-with-dv-large": 1993,
    "s-table-with-dv-small": 8,
    "s-variant-stats-state-reconstruction": 1,
    "s-variant-stats-with-struct-no-checkpoint": 10,
    "k-spark-shredded-variant-preview-delta": 102,
}
"""Rows of tables that no reader of `expected.json` could make a digest of."""
LARGE = 100_000
"""Rows up to which all values are compared."""

READABLE = sorted(
    name for name, facts in expected().items() if facts["rows"] is not None and name not in {*REFUSED, *COUNTED}
)
VARIANT = {"r-spark-variant-checkpoint"}
"""Tables with variants, which readers show in different ways."""


@pytest.mark.parametrize("name", READABLE)
def test_rows_are_those_of_other_readers(name: str, golden: Golden, goldens: lakedbapi.Connection) -> None:
    facts, table = expected()[name], f'"{golden(name).parent.name}"."table"'
    if facts["rows"] > LARGE or name in VARIANT or not facts["digest"]:
        assert goldens.execute(f"SELECT count(*) FROM {table}").fetchone() == (facts["rows"],)
        return
    rows = goldens.execute(f"SELECT * FROM {table}").fetch_arrow_table()
    assert (rows.num_rows, digest(rows)) == (facts["rows"], facts["digest"])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_duckdb_2("has no Arrow form of VARIANT") if "variant" in name else ())
        for name in sorted(COUNTED)
    ],
)
def test_rows_are_counted(name: str, golden: Golden, goldens: lakedbapi.Connection) -> None:
    rows = goldens.execute(f'SELECT * FROM "{golden(name).parent.name}"."table"').fetch_arrow_table()
    assert rows.num_rows == COUNTED[name]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_tables_that_cannot_be_read_are_refused(name: str, golden: Golden, goldens: lakedbapi.Connection) -> None:
    kind, reason = REFUSED[name]
    with pytest.raises(kind, match=reason):
        goldens.execute(f'SELECT * FROM "{golden(name).parent.name}"."table"')
