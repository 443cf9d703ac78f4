"""What a table's properties and commits may say: unknown versions and features are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.formats.hudi.properties import Properties
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect

REFUSED = {
    "table version 5": {"hoodie__table__version": "5"},
    "table version 7": {"hoodie__table__version": "7"},
    "table version 10": {"hoodie__table__version": "10"},
    "table version next": {"hoodie__table__version": "next"},
    "hoodie.datasource.write.drop.partition.columns=true": {
        "hoodie__datasource__write__drop__partition__columns": "true"
    },
    "hoodie.bootstrap.base.path": {"hoodie__bootstrap__base__path": "/old"},
    "hoodie.table.base.file.format=ORC": {"hoodie__table__base__file__format": "ORC"},
    "hoodie.table.base.file.format=HFILE": {"hoodie__table__base__file__format": "HFILE"},
    "several hoodie.table.ordering.fields": {"hoodie__table__ordering__fields": "intField,longField"},
}


@pytest.mark.parametrize(("feature", "values"), REFUSED.items(), ids=list(REFUSED))
def test_a_feature_is_refused_by_name(
    feature: str, values: dict[str, str], golden: Callable[[str], Path], connect: Connect
) -> None:
    directory = golden(g.COW)
    g.set_properties(directory, **values)
    with pytest.raises(lakedbapi.NotSupportedError) as refused:
        connect(directory).execute("SELECT * FROM t")
    assert f"Hudi tables with {feature}" in str(refused.value)
    assert str(directory) in str(refused.value)


@pytest.mark.parametrize("missing", ["hoodie.table.name", "hoodie.table.type", "hoodie.table.version"])
def test_properties_must_say_the_least(missing: str, golden: Callable[[str], Path], connect: Connect) -> None:
    directory = golden(g.COW)
    g.set_properties(directory, missing)
    with pytest.raises(lakedbapi.DataError, match=f"hoodie.properties: it has no {missing}"):
        connect(directory).execute("SELECT * FROM t")


def test_the_layout_must_fit_the_version(golden: Callable[[str], Path], connect: Connect) -> None:
    directory = golden(g.COW)
    g.set_properties(directory, hoodie__timeline__layout__version="2")
    with pytest.raises(lakedbapi.DataError, match=r"table version 6 needs hoodie.timeline.layout.version=1"):
        connect(directory).execute("SELECT * FROM t")


def test_schema_on_read_evolution_is_refused(golden: Callable[[str], Path], connect: Connect) -> None:
    """Files keep the old names of columns there, which hudi-rs does not know."""
    directory = golden(g.COW)
    path = directory / ".hoodie" / "20240418173551906.commit"
    commit = json.loads(path.read_text())
    commit["extraMetadata"]["latest_schema"] = "{}"
    path.write_text(json.dumps(commit))
    connection = connect(directory)
    with pytest.raises(lakedbapi.NotSupportedError, match="schema-on-read evolution"):
        connection.execute("SELECT * FROM t")
    assert connection.execute("SELECT count(*) FROM t VERSION AS OF 20240418173550988").fetchone() == (3,)


@pytest.mark.parametrize(
    ("payload", "values"),
    [
        ("PartialUpdateAvroPayload", {}),
        ("com.example.Mine", {}),
        ("", {"hoodie__record__merge__mode": "CUSTOM"}),
    ],
)
def test_mergers_of_their_own_are_refused(
    payload: str, values: dict[str, str], golden: Callable[[str], Path], connect: Connect
) -> None:
    directory = golden(g.MOR)
    payload = payload if "." in payload or not payload else f"org.apache.hudi.common.model.{payload}"
    g.set_properties(
        directory,
        "hoodie.compaction.record.merger.strategy",
        "hoodie.compaction.payload.class",
        **({"hoodie__compaction__payload__class": payload} if payload else {}),
        **values,
    )
    with pytest.raises(lakedbapi.NotSupportedError, match="merger"):
        connect(directory).execute("SELECT * FROM t")
    assert connect(directory, read_optimized=True).execute("SELECT count(*) FROM t").fetchone() == (4,)


def test_properties_are_read_as_java_writes_them() -> None:
    text = b"#comment\n! another\n\na = 1\nb\\:c:x\\=y\\\n   z\nd\\ e=\\u00e9\\t\\\\\nempty=\nalone\n"
    values = {"a": "1", "b:c": "x=yz", "d e": "é\t\\", "empty": "", "alone": ""}
    assert Properties.parse("/t/", text).values == values


def test_properties_that_are_no_text_are_data_errors() -> None:
    with pytest.raises(lakedbapi.DataError, match=r"/t/.hoodie/hoodie.properties: it is no text"):
        Properties.parse("/t/", b"\xff\xfe\x00")
