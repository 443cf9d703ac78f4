"""Expressions that the definition of a table holds: in the SQL that its format keeps them in, made ready for the
engine."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.types import Schema
from lakedbapi.sql import guard, spark


def runnable(catalog: Catalog, schema: Schema, text: str, what: str) -> str:
    """The engine's SQL of an expression over the columns of `schema`.

    `what` says what it is, such as `the default of column 'a'`. NotSupportedError when the engine may give it another
    value than the program that it is for; ProgrammingError when it reaches outside.
    """
    if not catalog.capabilities.spark_expressions:
        guard.check_stored(text, what)
        return text
    translated = spark.to_engine(text, schema)
    if translated is None:
        raise NotSupportedError(
            f"{what} is the expression {text} of Spark, which cannot be computed here in the same way: write with the "
            "program that made the table, or drop it there"
        )
    return translated


def runnable_default(catalog: Catalog, text: str, what: str) -> str:
    """Likewise of a default. One that only the engine may know is tried as it is: it has a value, or an error."""
    translated = spark.to_engine(text, Schema(())) if catalog.capabilities.spark_expressions else None
    if translated is None:
        guard.check_stored(text, what)
        return text
    return translated


def shown(catalog: Catalog, schema: Schema, text: str) -> str:
    """An expression over the columns of `schema` as a statement here has it: Spark quotes in other ways."""
    if not catalog.capabilities.spark_expressions or not set(text) & set('\\`"'):
        return text
    return spark.to_engine(text, schema) or text


def kept(catalog: Catalog, schema: Schema, text: str, what: str) -> str:
    """An expression of the engine as the format keeps it; NotSupportedError when it has none that means the same."""
    if not catalog.capabilities.spark_expressions:
        return text
    printed = spark.from_engine(text, schema)
    if printed is None:
        raise NotSupportedError(
            f"{what} is {text}, but the other programs that write {catalog.format} tables may have another value for "
            "it: use comparisons, arithmetic, CASE, CAST and plain functions, with operands of like types"
        )
    return printed


def kept_default(catalog: Catalog, text: str) -> str:
    """A default as the format keeps it: as it was written where there is none that means the same."""
    printed = spark.from_engine(text, Schema(())) if catalog.capabilities.spark_expressions else None
    return text if printed is None else printed
