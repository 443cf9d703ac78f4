"""Superset over a lake, from adding the database to a chart, through Superset's own REST API and a browser.

    python compliance/superset/run.py --home DIRECTORY [--images DIRECTORY]

Runs in the environment of requirements.txt with this project installed (`make superset`). Every step asserts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import server
from server import Superset

import lakedbapi

URI = "ducklake+sqlite:///{path}/catalog.sqlite"
SLOW = "SELECT count(*) FROM range(3000000) a, range(3000000) b WHERE a.range * b.range % 7 = 1"
HISTORY = """SELECT region, sum(old.amount) AS before, sum(new.amount) AS now
FROM sales FOR VERSION AS OF {version} AS old
LEFT JOIN sales AS new USING (id, region)
GROUP BY region
ORDER BY region"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="where Superset and the lake live")
    parser.add_argument("--images", type=Path, help="take screenshots into this directory")
    arguments = parser.parse_args()
    home = arguments.home.resolve()
    lake = home / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    version = make_lake(lake)
    server.prepare(home)
    with server.serving(home) as superset:
        steps = Steps(superset, lake, version)
        steps.run()
        if arguments.images is not None:
            take_screenshots(superset, steps, arguments.images.resolve())
    print("all steps passed")


def make_lake(path: Path) -> int:
    """A table of 10,000 sales in 60 days; returns the version with all of them as sold."""
    with lakedbapi.connect(URI.format(path=path)) as connection:
        connection.execute(
            "CREATE TABLE sales (id BIGINT PRIMARY KEY, region VARCHAR, sold TIMESTAMP, amount DECIMAL(9, 2), "
            "tags VARCHAR[]) PARTITIONED BY (region)"
        )
        connection.execute(
            "INSERT INTO sales SELECT range, ['north', 'east', 'south', 'west'][1 + range % 4], "
            "TIMESTAMP '2026-01-01' + INTERVAL (range * 864 // 100) MINUTE, 1 + range % 97, ['a'] FROM range(10000)"
        )
        connection.execute("COMMENT ON TABLE sales IS 'what was sold'")
        connection.commit()
        version = connection.snapshot_id
        assert version is not None
        return version


class Steps:
    def __init__(self, superset: Superset, lake: Path, version: int) -> None:
        self.superset = superset
        self.lake = lake
        self.version = version
        self.name = "shop"
        self.database = self.dataset = self.chart = 0

    def run(self) -> None:
        for step in (
            self.superset_knows_the_engine,
            self.the_database_is_added,
            self.its_tables_are_shown,
            self.functions_are_completed,
            self.sql_lab_selects,
            self.sql_lab_travels_in_time,
            self.sql_lab_changes_rows,
            self.sql_lab_creates_tables,
            self.errors_are_explained,
            self.a_file_is_uploaded,
            self.a_chart_has_a_time_grain,
            self.a_query_is_cancelled,
        ):
            self._timed(step)

    def _timed(self, step: Callable[[], None]) -> None:
        start = time.perf_counter()
        step()
        print(f"{step.__name__.replace('_', ' ')}: {time.perf_counter() - start:.1f} s", flush=True)

    def rows(self, sql: str, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.superset.sql(self.database, sql, **more)["data"]
        return found

    def superset_knows_the_engine(self) -> None:
        found = self.superset.get("/api/v1/database/available/")["databases"]
        lake = next(database for database in found if database["engine"] == "lake")
        assert lake["available_drivers"] == ["lakedbapi"]

    def the_database_is_added(self) -> None:
        named = {"database_name": self.name, "sqlalchemy_uri": URI.format(path=self.lake)}
        body = {
            **named,
            "expose_in_sqllab": True,
            "allow_dml": True,
            "allow_ctas": True,
            "allow_cvas": True,
            "allow_file_upload": True,
            "extra": json.dumps({"schemas_allowed_for_file_upload": ["main"]}),
        }
        self.superset.post("/api/v1/database/test_connection", named)
        self.database = self.superset.post("/api/v1/database/", body)["id"]
        added = self.superset.get(f"/api/v1/database/{self.database}")["result"]
        assert added["backend"] == "ducklake"
        assert added["engine_information"]["supports_file_upload"]

    def its_tables_are_shown(self) -> None:
        path = f"/api/v1/database/{self.database}"
        assert self.superset.get(f"{path}/catalogs/")["result"] == ["lake"]
        assert self.superset.get(f"{path}/schemas/")["result"] == ["main"]
        tables = self.superset.get(f"{path}/tables/?q=(schema_name:main)")["result"]
        assert [(table["value"], table["type"]) for table in tables] == [("sales", "table")]
        shown = self.superset.get(f"{path}/table_metadata/?name=sales&schema=main")
        assert [column["name"] for column in shown["columns"]] == ["id", "region", "sold", "amount", "tags"]
        assert shown["comment"] == "what was sold"
        extra = self.superset.get(f"{path}/table_metadata/extra/?name=sales&schema=main")
        assert extra["metadata"]["snapshot_id"] == str(self.version)
        assert extra["partitions"]["cols"] == ["region"]

    def functions_are_completed(self) -> None:
        names = self.superset.get(f"/api/v1/database/{self.database}/function_names/")["function_names"]
        assert {"date_trunc", "sum", "regexp_matches"} <= set(names)

    def sql_lab_selects(self) -> None:
        answer = self.superset.sql(self.database, "SELECT * FROM sales WHERE id = 6 -- 100 % of one")
        assert answer["data"][0]["region"] == "south"
        types = {column["name"]: column["type"] for column in answer["columns"]}
        assert types["amount"].replace(" ", "") == "DECIMAL(9,2)", types
        assert [c["name"] for c in answer["columns"] if c["is_dttm"]] == ["sold"]
        script = "SELECT 1 AS one; SELECT count(*) AS n FROM lake.main.sales"
        assert self.rows(script) == [{"n": 10000}]

    def sql_lab_travels_in_time(self) -> None:
        self.rows("DELETE FROM sales WHERE id >= 9000")
        for spelling in (
            f"FOR VERSION AS OF {self.version}",
            f"AT (VERSION => {self.version})",
            f"FOR VERSION AS OF {self.version} AS s",
        ):
            assert self.rows(f"SELECT count(*) AS n FROM sales {spelling}") == [{"n": 10000}], spelling
        moment = self.rows("SELECT max(snapshot_time)::VARCHAR AS t FROM lake.snapshots()")[0]["t"]
        assert self.rows(f"SELECT count(*) AS n FROM sales FOR TIMESTAMP AS OF '{moment}'") == [{"n": 9000}]

    def sql_lab_changes_rows(self) -> None:
        answer = self.superset.sql(self.database, "UPDATE sales SET amount = amount * 2 WHERE region = 'north'")
        assert answer["data"] == []
        assert self.rows("SELECT sum(amount) AS s FROM sales WHERE region = 'north'") != self.rows(
            f"SELECT sum(amount) AS s FROM sales FOR VERSION AS OF {self.version} WHERE region = 'north' AND id < 9000"
        )
        self.rows("DELETE FROM sales WHERE id < 100")
        self.rows("INSERT INTO sales VALUES (20000, 'west', TIMESTAMP '2026-04-01 10:00:00', 5, ['new'])")
        self.rows(
            "MERGE INTO sales AS t USING (SELECT 20000 AS id, 7 AS amount) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amount = s.amount"
        )
        assert self.rows("SELECT count(*) AS n, max(id) AS last FROM sales") == [{"n": 8901, "last": 20000}]
        assert self.rows("SELECT amount FROM sales WHERE id = 20000")[0]["amount"] in (7, 7.0, "7.00")

    def sql_lab_creates_tables(self) -> None:
        select = "SELECT region, count(*) AS n FROM sales GROUP BY region"
        self.superset.sql(self.database, select, select_as_cta=True, ctas_method="TABLE", tmp_table_name="regions")
        self.superset.sql(self.database, select, select_as_cta=True, ctas_method="VIEW", tmp_table_name="regions_view")
        assert self.rows("SELECT count(*) AS n FROM regions JOIN regions_view USING (region)") == [{"n": 4}]

    def errors_are_explained(self) -> None:
        for statement, kind in (
            ("SELECT * FROM nosuch", "TABLE_DOES_NOT_EXIST_ERROR"),
            ("SELECT nosuch FROM sales", "COLUMN_DOES_NOT_EXIST_ERROR"),
        ):
            assert kind in self._failure(statement)

    def _failure(self, statement: str) -> str:
        try:
            self.rows(statement)
        except RuntimeError as error:
            return str(error)
        raise AssertionError(f"{statement} did not fail")

    def a_file_is_uploaded(self) -> None:
        content = "id,city\n" + "".join(f"{n},c{n}\n" for n in range(2000))
        fields = {"type": "csv", "table_name": "cities", "schema": "main", "already_exists": "fail", "delimiter": ","}
        self.superset.upload(f"/api/v1/database/{self.database}/upload/", fields, "cities.csv", content.encode())
        assert self.rows("SELECT count(*) AS n, max(id) AS last FROM cities") == [{"n": 2000, "last": 1999}]

    def a_chart_has_a_time_grain(self) -> None:
        body = {"database": self.database, "schema": "main", "table_name": "sales"}
        self.dataset = self.superset.post("/api/v1/dataset/", body)["id"]
        grains = self.superset.get(f"/api/v1/database/{self.database}")["result"]
        assert grains["engine_information"] is not None
        metric = {"expressionType": "SQL", "sqlExpression": "SUM(amount)", "label": "amount"}
        axis = {"columnType": "BASE_AXIS", "expressionType": "SQL", "sqlExpression": "sold", "label": "sold"}
        for grain, points in (("P1D", 54), ("P1W", 8), ("P1M", 2), ("PT6H", 214), ("1969-12-28T00:00:00Z/P1W", 8)):
            query = {
                "columns": [{**axis, "timeGrain": grain}],
                "metrics": [metric],
                "row_limit": 10000,
                "time_range": "2026-01-01 : 2026-03-02",
                "granularity": "sold",
                "extras": {"time_grain_sqla": grain},
            }
            source = {"id": self.dataset, "type": "table"}
            chart = {"datasource": source, "queries": [query], "result_format": "json", "result_type": "full"}
            result = self.superset.post("/api/v1/chart/data", chart)["result"][0]
            assert points - 1 <= result["rowcount"] <= points + 1, (grain, result["rowcount"])
        self.chart = self._saved_chart(metric)

    def _saved_chart(self, metric: dict[str, Any]) -> int:
        params = {
            "datasource": f"{self.dataset}__table",
            "viz_type": "echarts_timeseries_bar",
            "x_axis": "sold",
            "time_grain_sqla": "P1W",
            "metrics": [{**metric, "optionName": "metric_amount"}],
            "groupby": ["region"],
            "stack": "Stack",
            "show_legend": True,
            "row_limit": 10000,
            "color_scheme": "supersetColors",
        }
        body = {
            "slice_name": "Sales a week",
            "viz_type": params["viz_type"],
            "datasource_id": self.dataset,
            "datasource_type": "table",
            "params": json.dumps(params),
        }
        chart: int = self.superset.post("/api/v1/chart/", body)["id"]
        return chart

    def a_query_is_cancelled(self) -> None:
        outcome: list[Any] = []

        def slow() -> None:
            try:
                outcome.append(self.superset.sql(self.database, SLOW, client_id="cancelme1"))
            except RuntimeError as error:
                outcome.append(error)

        thread = threading.Thread(target=slow)
        thread.start()
        time.sleep(4)
        assert thread.is_alive(), outcome
        start = time.perf_counter()
        self.superset.post("/api/v1/query/stop", {"client_id": "cancelme1"})
        thread.join(30)
        assert not thread.is_alive()
        assert time.perf_counter() - start < 10
        # Superset notes the stop after the driver did it: either of them may tell first.
        assert any(word in str(outcome[0]) for word in ("stopped", "cancelled")), outcome
        assert self.rows("SELECT 1 AS one") == [{"one": 1}]


def take_screenshots(superset: Superset, steps: Steps, images: Path) -> None:
    import browser

    body = {
        "db_id": steps.database,
        "schema": "main",
        "label": "then and now",
        "sql": HISTORY.format(version=steps.version),
    }
    saved = superset.post("/api/v1/saved_query/", body)["id"]
    with browser.logged_in(superset.url, server.USER, server.PASSWORD) as driver:
        browser.shoot_chart(driver, superset.url, steps.chart, images / "superset-chart.png")
        browser.shoot_sql_lab(driver, superset.url, saved, images / "superset-sql-lab.png")
    print(f"screenshots are in {images}")


if __name__ == "__main__":
    main()
