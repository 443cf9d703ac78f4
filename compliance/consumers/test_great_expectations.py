"""Great Expectations validates tables of a lake."""

from __future__ import annotations

from compliance.consumers.conftest import tool

gx = tool("great_expectations")


def test_expectations_are_met_and_missed(url: str) -> None:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_sql("shop", connection_string=url).add_table_asset("orders", table_name="orders")
    batch = asset.add_batch_definition_whole_table("all").get_batch()
    expectations = gx.expectations
    for expectation, met in (
        (expectations.ExpectColumnValuesToBeBetween(column="price", min_value=0, max_value=10), True),
        (expectations.ExpectColumnValuesToBeUnique(column="id"), True),
        (expectations.ExpectTableRowCountToEqual(value=3), True),
        (expectations.ExpectColumnMeanToBeBetween(column="price", min_value=4, max_value=6), True),
        (expectations.ExpectColumnValuesToNotBeNull(column="placed"), False),
        (expectations.ExpectColumnValuesToBeInSet(column="customer_id", value_set=[1]), False),
    ):
        result = batch.validate(expectation)
        assert not result.exception_info.get("raised_exception"), result.exception_info
        assert result.success is met, expectation
