"""Tables that other programs wrote are changed: rows go, and come back as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.delta.golden import expected

ROWS = 5000
REFUSED = {
    "g-collations-table": "collations",
    "r-spark-variant-checkpoint": "features that cannot be written",
    "r-table_with_liquid_clustering": "liquid",
}
"""Tables that are not changed here, and why."""
NAMES = sorted(
    name
    for name, facts in expected().items()
    if facts["rows"] is not None and facts["rows"] <= ROWS and name not in REFUSED
)
UNREADABLE = (lakedbapi.DataError, lakedbapi.NotSupportedError, lakedbapi.OperationalError)


def shown(path: Path) -> list[str]:
    """All rows as another connection sees them."""
    with lakedbapi.connect(f"delta:///{path}") as fresh:
        return sorted(map(repr, fresh.execute('SELECT * FROM "table"').fetchall()))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_deleted_and_updated(name: str, tmp_path: Path, golden: Callable[[str, Path], Path]) -> None:
    path = golden(name, tmp_path)
    try:
        before = shown(path)
    except UNREADABLE:
        pytest.skip("it cannot be read either: tests/formats/delta says why")
    with lakedbapi.connect(f"delta:///{path}", autocommit=True) as connection:
        gone = connection.execute('DELETE FROM "table" WHERE file_row_number = 0').rowcount
        left = shown(path)
        assert len(left) == len(before) - gone
        [(column,)] = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE identity_generation IS DISTINCT FROM 'ALWAYS' "
            "ORDER BY ordinal_position LIMIT 1"
        ).fetchall()
        assert connection.execute(f'UPDATE "table" SET "{column}" = "{column}"').rowcount == len(left)
    assert shown(path) == left


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_changed_stays(name: str, tmp_path: Path, golden: Callable[[str, Path], Path]) -> None:
    path = golden(name, tmp_path)
    before = shown(path)
    with lakedbapi.connect(f"delta:///{path}", autocommit=True) as connection:
        column = (connection.execute('SELECT * FROM "table" LIMIT 0').description or ())[0][0]
        with pytest.raises(lakedbapi.NotSupportedError, match=REFUSED[name]):
            connection.execute(f'UPDATE "table" SET "{column}" = "{column}"')
    assert shown(path) == before
