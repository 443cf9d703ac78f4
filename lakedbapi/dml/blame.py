"""Which column a value does not fit: engines say what went wrong, but not for which column of the target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Query
from lakedbapi.errors import DamagedFileError, DataError


@contextmanager
def blaming(target: Target, query: Query, alone: Mapping[str, str]) -> Iterator[None]:
    """Inside, where `query` runs, a DataError gets the name of the column that a value does not fit.

    It is found by running the texts of `alone` (by column, its values and nothing else) in place of the query's.
    """
    try:
        yield
    except DamagedFileError:
        raise
    except DataError as error:
        column = _failing(target, query, alone)
        if column is None:
            raise
        raise DataError(f"value for column {target.table.name}.{column}: {_plain(str(error))}") from error


def _failing(target: Target, query: Query, alone: Mapping[str, str]) -> str | None:
    if any(isinstance(relation, pa.RecordBatchReader) for relation in query.relations.values()):
        return None
    for column, sql in alone.items():
        try:
            target.fetch(replace(query, sql=sql))
        except DataError:
            return column
    return None


def _plain(message: str) -> str:
    """Without the engine's prefix and without names that are not the statement's."""
    return re.sub(r"^Conversion Error: | when casting from source column _lake_\w+", "", message)
