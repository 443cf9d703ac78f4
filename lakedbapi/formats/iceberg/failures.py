"""Errors of catalogs and their clients as those of PEP 249."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from pyiceberg import exceptions as iceberg

from lakedbapi.errors import DataError, Error, NotSupportedError, OperationalError


@contextmanager
def reported(doing: str) -> Iterator[None]:
    """`doing` says what fails, such as `catalog rest: loading table a.b`."""
    try:
        yield
    except Error:
        raise
    except (iceberg.NotInstalledError, ModuleNotFoundError) as error:
        raise NotSupportedError(f"{doing} failed: {_shown(error)}") from error
    except NotImplementedError as error:
        raise NotSupportedError(f"{doing} is not supported: {_shown(error)}") from error
    except ValidationError as error:
        raise _invalid(doing, error) from error
    except Exception as error:  # Catalog clients raise whatever theirs do.
        raise OperationalError(f"{doing} failed: {_shown(error)}") from error


def _invalid(doing: str, error: ValidationError) -> Error:
    text = _shown(error)
    if "version" in text.casefold() and "format" in text.casefold():
        return NotSupportedError(f"{doing} failed: tables of format version 1, 2 and 3 can be read here. {text}")
    return DataError(f"{doing} failed, its metadata is not valid: {text}")


def _shown(error: Exception) -> str:
    """The first lines of a message: those of servers can be pages."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
