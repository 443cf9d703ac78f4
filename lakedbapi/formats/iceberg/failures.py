"""Errors of catalogs and their clients as those of PEP 249."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import ValidationError
from pyiceberg import exceptions as iceberg
from sqlalchemy.exc import SQLAlchemyError

from lakedbapi.errors import DataError, Error, NotSupportedError, OperationalError

_UNANSWERED = (iceberg.CommitStateUnknownException, iceberg.ServerError, iceberg.ServiceUnavailableError)
_TRANSPORTS = frozenset({"botocore", "aiobotocore", "requests", "urllib3", "thrift"})
"""The packages that clients reach catalogs through."""


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


def may_be_done(error: Exception, *, by_server: bool) -> bool:
    """Whether what a catalog was asked for may have happened, or may yet, although `error` came of it: nobody said no.

    `by_server`: a REST server does all of it, otherwise the client writes the metadata and asks for the swap alone.
    """
    if isinstance(error, _UNANSWERED):
        return True
    if isinstance(error, (Error, NotImplementedError)) or type(error).__module__ == iceberg.__name__:
        return False
    if by_server:
        return True  # The connection broke, or the answer makes no sense.
    if isinstance(error, SQLAlchemyError):
        return bool(getattr(error, "connection_invalidated", False))
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, (ConnectionError, TimeoutError)) or (package in _TRANSPORTS and not _is_answer(error))


def _is_answer(error: Exception) -> bool:
    """Whether AWS has said no, rather than nothing or that something went wrong there."""
    response = getattr(error, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, Mapping) else None
    return isinstance(status, int) and status < 500
