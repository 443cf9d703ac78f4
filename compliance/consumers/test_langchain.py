"""LangChain's SQLDatabase, which agents ask and let run SQL."""

from __future__ import annotations

from compliance.consumers.conftest import tool

utilities = tool("langchain_community.utilities")


def test_an_agent_sees_the_schema_and_runs_sql(url: str) -> None:
    database = utilities.SQLDatabase.from_uri(url, view_support=True)
    assert database.dialect == "lake"
    assert set(database.get_usable_table_names()) == {"customer", "orders", "spent"}
    described = database.get_table_info(["orders"])
    assert "price DECIMAL(9, 2)" in described
    assert "FOREIGN KEY(customer_id) REFERENCES customer (id)" in described
    assert "2026-01-02 12:00:00+00:00" in described
    assert database.run("SELECT name FROM customer ORDER BY id") == "[('Ada',), ('Bob',)]"
    database.run("UPDATE customer SET city = 'Ulm' WHERE id = 2")
    assert database.run("SELECT city FROM customer ORDER BY id") == "[('Kiel',), ('Ulm',)]"
