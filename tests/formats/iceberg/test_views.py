"""Views of REST catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

import lakedbapi
from compliance.iceberg.rest_catalog import PASSWORD, USER, RestCatalog, serving
from lakedbapi.formats.iceberg.view_requests import ViewClient

VIEW = Schema(NestedField(1, "name", StringType(), required=False))


class Served:
    """A REST catalog with a connection to it, and pyiceberg's client as another program."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = self.connect()
        uri = f"http://127.0.0.1:{port}"
        login = {"credential": f"{USER}:{PASSWORD}", "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
        self.other = load_catalog("other", type="rest", uri=uri, **login)

    def connect(self, **options: Any) -> lakedbapi.Connection:
        options = {"schema": "ns", "autocommit": True, **options}
        return lakedbapi.connect(f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{self.port}", **options)

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql)
        return sorted(cursor.fetchall()) if cursor.description else []

    def add(self, name: str, texts: dict[str, str], *, schema: Schema = VIEW, **version: Any) -> None:
        """A view of another program."""
        representations = [
            ViewRepresentation(SQLViewRepresentation(type="sql", sql=sql, dialect=dialect))
            for dialect, sql in texts.items()
        ]
        values = {"schema-id": 0, "default-namespace": ("ns",), "representations": representations, **version}
        self.other.create_view(("ns", name), schema, ViewVersion(**values))

    def metadata(self, name: str) -> Any:
        return self.other.load_view(("ns", name)).metadata

    def text(self, name: str) -> str:
        text = self.other.load_view(("ns", name)).sql_for("duckdb")
        assert text is not None
        return text.sql


def _behind(path: Path) -> Catalog:
    return load_catalog("behind", type="sql", uri=f"sqlite:///{path}/c.db", warehouse=f"file://{path}/w")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    catalog = _behind(tmp_path)
    catalog.create_namespace("ns")
    schema = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType()))
    catalog.create_table("ns.t", schema)
    with serving(RestCatalog(catalog)) as port:
        made = Served(port)
        made("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield made
        made.connection.close()
    catalog.close()


def test_a_view_is_made_and_read(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id, name FROM t WHERE id > 1")
    assert served("SELECT * FROM v") == [(2, "b")]
    assert served("SELECT v.id FROM ns.v JOIN t ON t.id = v.id") == [(2,)]
    assert served("SHOW VIEWS") == [("v",)]
    served("INSERT INTO t VALUES (3, 'c')")
    assert served("SELECT * FROM v") == [(2, "b"), (3, "c")]


def test_another_program_finds_text_columns_and_namespace(served: Served) -> None:
    served("CREATE VIEW v (number, doubled, twice) AS SELECT id, name, id::TINYINT * 2::TINYINT FROM t")
    metadata = served.metadata("v")
    (version,) = metadata.versions
    (schema,) = metadata.schemas
    assert [(f.name, str(f.field_type)) for f in schema.fields] == [
        ("number", "long"),
        ("doubled", "string"),
        ("twice", "int"),
    ]
    assert version.default_namespace == ("ns",)
    assert version.default_catalog is None
    assert served.text("v") == "SELECT id, name, id::TINYINT * 2::TINYINT FROM t"
    assert metadata.properties == {}


def test_columns_have_the_names_of_the_view(served: Served) -> None:
    served("CREATE VIEW v (b) AS SELECT id FROM t")
    again = served.connect()
    assert again.execute("SELECT b FROM v ORDER BY b").fetchall() == [(1,), (2,)]
    again.close()
    served.add("w", {"duckdb": "SELECT name || '!' FROM t"})
    assert served("SELECT name FROM w") == [("a!",), ("b!",)]


def test_a_star_follows_the_table(served: Served) -> None:
    served("CREATE VIEW v AS SELECT * FROM t")
    served("ALTER TABLE t ADD COLUMN first INTEGER FIRST")
    again = served.connect()
    assert again.execute("SELECT name, first FROM v ORDER BY id").fetchall() == [("a", None), ("b", None)]
    again.close()


def test_a_view_is_replaced_in_one_commit(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id FROM t")
    served("COMMENT ON VIEW v IS 'old'")
    before = served.metadata("v")
    served("CREATE OR REPLACE VIEW V AS SELECT name AS word FROM t")
    after = served.metadata("v")
    assert served("SELECT word FROM v") == [("a",), ("b",)]
    assert after.view_uuid == before.view_uuid
    assert [entry.version_id for entry in after.version_log] == [1, 2]
    assert after.current_version_id == 2
    assert [f.name for f in served.other.load_view("ns.v").schema().fields] == ["word"]
    assert after.properties == {}


def test_comments_and_names(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id FROM t")
    served("COMMENT ON VIEW v IS 'ids'")
    assert served.metadata("v").properties == {"comment": "ids"}
    served("ALTER VIEW v RENAME TO w")
    assert served("SHOW VIEWS") == [("w",)]
    assert served("SELECT * FROM w") == [(1,), (2,)]
    served("COMMENT ON VIEW w IS NULL")
    assert served.metadata("w").properties == {}


def test_a_view_is_dropped(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id FROM t")
    served("DROP VIEW v")
    served("DROP VIEW IF EXISTS v")
    assert served.other.list_views("ns") == []
    with pytest.raises(lakedbapi.ProgrammingError, match="v does not exist"):
        served("SELECT * FROM v")


def test_a_schema_goes_with_its_views(served: Served) -> None:
    served("CREATE SCHEMA s")
    served("CREATE VIEW s.v AS SELECT id FROM ns.t")
    with pytest.raises(lakedbapi.ProgrammingError, match="v"):
        served("DROP SCHEMA s")
    served("DROP VIEW s.v")
    served("DROP SCHEMA s")
    assert ("s",) not in served("SHOW SCHEMAS")


def test_a_view_of_a_new_schema_reads_another_one(served: Served) -> None:
    served("CREATE SCHEMA s")
    served("CREATE VIEW s.v AS SELECT count(*) AS n FROM t")
    assert "{" not in served.other.load_view("s.v").sql_for("duckdb").sql  # type: ignore[union-attr]
    again = served.connect(schema="s")
    assert again.execute("SELECT n FROM v").fetchall() == [(2,)]
    again.close()


def test_the_own_catalog_has_no_name_in_the_text(served: Served) -> None:
    alias = served.connection.current_catalog
    served(f'CREATE VIEW v AS SELECT id FROM "{alias}".ns.t')
    again = lakedbapi.connect("lake://", allow_attach=True)
    again.attach(f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{served.port}", "renamed")
    assert again.execute("SELECT count(*) FROM renamed.ns.v").fetchall() == [(2,)]
    again.close()


def test_unqualified_tables_are_in_the_default_namespace(served: Served, tmp_path: Path) -> None:
    served("CREATE SCHEMA s")
    location = tmp_path / "of_s"
    served(f"CREATE TABLE s.t (name VARCHAR) WITH ('location' = 'file://{location}')")
    served("INSERT INTO s.t VALUES ('of s')")
    served.add("v", {"duckdb": "SELECT name FROM t"}, **{"default-namespace": ("s",)})
    served.add("w", {"duckdb": "SELECT v.name FROM ns.v JOIN t ON t.name = v.name"}, **{"default-namespace": ("s",)})
    assert served("SELECT * FROM v") == [("of s",)]
    assert served("SELECT v.name FROM v, t WHERE t.id = 1") == [("of s",)]
    assert served("SELECT * FROM w") == [("of s",)]


def test_the_default_catalog_is_one_that_is_attached(served: Served, tmp_path: Path) -> None:
    served.add("v", {"duckdb": "SELECT name FROM t"}, **{"default-catalog": "prod", "default-namespace": ("main",)})
    with pytest.raises(lakedbapi.ProgrammingError, match="catalog 'prod', which is not attached"):
        served("SELECT * FROM v")
    with lakedbapi.connect(tmp_path / "prod", autocommit=True) as other:
        other.execute("CREATE TABLE t AS SELECT 'of prod' AS name")
    served.connection.attach(f"{tmp_path}/prod", "prod")
    assert served("SELECT * FROM v") == [("of prod",)]


def test_the_text_in_the_engines_dialect_counts(served: Served) -> None:
    served.add("v", {"spark": "SELECT `name` FROM t", "DuckDB": "SELECT name FROM t"})
    served.add("sparks", {"spark": "SELECT `name` FROM t"})
    assert served("SELECT * FROM v") == [("a",), ("b",)]
    with pytest.raises(lakedbapi.NotSupportedError, match="dialect 'spark'"):
        served("SELECT * FROM sparks")
    assert served("SHOW VIEWS") == [("sparks",), ("v",)]
    served("CREATE OR REPLACE VIEW sparks AS SELECT id FROM t")
    assert served("SELECT * FROM sparks") == [(1,), (2,)]


def test_views_are_listed_and_reflected(served: Served) -> None:
    served("CREATE VIEW v (number) AS SELECT id FROM t")
    tables = served("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'ns'")
    assert tables == [("t", "BASE TABLE"), ("v", "VIEW")]
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'v'"
    assert served(columns) == [("number", "BIGINT")]
    assert served("SHOW CREATE VIEW v") == [('CREATE VIEW "ns"."v" ("number") AS SELECT id FROM t',)]
    engine = sa.create_engine(f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{served.port}/?schema=ns")
    inspector = sa.inspect(engine)
    assert inspector.get_view_names() == ["v"]
    assert [column["name"] for column in inspector.get_columns("v")] == ["number"]
    assert inspector.get_view_definition("v") is not None
    engine.dispose()


def test_types_that_no_view_can_have_are_refused(served: Served) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match=r"'d' of 'v'.*cannot hold INTERVAL"):
        served("CREATE VIEW v AS SELECT INTERVAL 1 DAY AS d FROM t")
    assert served("SHOW VIEWS") == []


def test_names_are_unique_among_tables_and_views(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(lakedbapi.ProgrammingError, match="is a view"):
        served("CREATE TABLE v (a INTEGER)")
    with pytest.raises(lakedbapi.ProgrammingError, match="is a table"):
        served("CREATE VIEW t AS SELECT 1 AS a")
    with pytest.raises(lakedbapi.ProgrammingError, match="exists already"):
        served("CREATE VIEW v AS SELECT 1 AS a")


CHANGES = [
    ("CREATE VIEW v AS SELECT id FROM t", ""),
    ("CREATE OR REPLACE VIEW v AS SELECT name FROM t", "v"),
    ("DROP VIEW v", "v"),
    ("COMMENT ON VIEW v IS 'x'", "v"),
    ("ALTER VIEW v RENAME TO w", "v"),
]


@pytest.mark.parametrize(("sql", "before"), CHANGES, ids=[sql[:12] for sql, _ in CHANGES])
def test_a_change_that_another_one_preceded_is_a_conflict(served: Served, sql: str, before: str) -> None:
    if before:
        served("CREATE VIEW v AS SELECT id FROM t")
    late = served.connect(autocommit=False)
    late.execute(sql)
    served("CREATE OR REPLACE VIEW v AS SELECT 7 AS seven")
    with pytest.raises(lakedbapi.OperationalError, match=r"ns\.v: since this transaction began") as caught:
        late.commit()
    assert caught.value.retryable  # type: ignore[attr-defined]
    assert served("SELECT seven FROM v") == [(7,)]
    late.close()


@pytest.mark.parametrize("comment", [False, True])
def test_of_two_that_replace_a_view_in_one_instant_the_first_wins(
    served: Served, monkeypatch: pytest.MonkeyPatch, comment: bool
) -> None:
    """The other one comes between the look at the view and the request to change it, which cannot ask for a version."""
    served("CREATE VIEW v AS SELECT id FROM t")
    slow, post = served.connect(autocommit=False), ViewClient._post

    def late(client: ViewClient, *request: Any) -> Any:
        monkeypatch.setattr(ViewClient, "_post", post)
        served("COMMENT ON VIEW v IS 'x'" if comment else "CREATE OR REPLACE VIEW v AS SELECT 7 AS seven")
        return post(client, *request)

    slow.execute("CREATE OR REPLACE VIEW v AS SELECT name FROM t")
    monkeypatch.setattr(ViewClient, "_post", late)
    if comment:
        slow.commit()
        assert served("SELECT * FROM v") == [("a",), ("b",)]
    else:
        with pytest.raises(lakedbapi.OperationalError, match=r"ns\.v: since this .*another one replaced it"):
            slow.commit()
        assert served("SELECT seven FROM v") == [(7,)]
    slow.close()


def test_a_view_that_was_dropped_and_made_anew_is_another_one(served: Served) -> None:
    served("CREATE VIEW v AS SELECT id FROM t")
    late = served.connect(autocommit=False)
    late.execute("DROP VIEW v")
    served("DROP VIEW v")
    served("CREATE VIEW v AS SELECT 7 AS seven")
    with pytest.raises(lakedbapi.OperationalError, match="dropped it"):
        late.commit()
    assert served("SELECT seven FROM v") == [(7,)]
    late.close()


def test_a_transaction_changes_one_object(served: Served) -> None:
    one = served.connect(autocommit=False)
    one.execute("CREATE VIEW v AS SELECT id FROM t")
    one.execute("INSERT INTO t VALUES (3, 'c')")
    assert one.execute("SELECT count(*) FROM v").fetchone() == (3,)
    with pytest.raises(lakedbapi.NotSupportedError, match=r"this one changes ns\.t, ns\.v"):
        one.commit()
    one.close()
    assert served("SHOW VIEWS") == []
    several = served.connect(autocommit=False, non_atomic=True)
    several.execute("CREATE VIEW v AS SELECT id FROM t")
    several.execute("INSERT INTO t VALUES (3, 'c')")
    several.commit()
    several.close()
    assert served("SELECT count(*) FROM v") == [(3,)]


def test_a_catalog_without_views_tells_the_way_out(tmp_path: Path) -> None:
    url = f"iceberg+sqlite:///{tmp_path}/c.db?warehouse={tmp_path}/w"
    with (
        lakedbapi.connect(url) as connection,
        pytest.raises(lakedbapi.NotSupportedError, match=r"CREATE VIEW v.*use a REST catalog whose server keeps views"),
    ):
        connection.execute("CREATE VIEW v AS SELECT 1 AS a")


def test_a_server_without_views_tells_the_way_out(tmp_path: Path) -> None:
    catalog = _behind(tmp_path)
    catalog.create_namespace("ns")
    with serving(RestCatalog(catalog, views=None)) as port:
        served = Served(port)
        with pytest.raises(lakedbapi.NotSupportedError, match="use a REST catalog whose server keeps views"):
            served("CREATE VIEW v AS SELECT 1 AS a")
        assert served("SHOW VIEWS") == []
        served.connection.close()
    catalog.close()
