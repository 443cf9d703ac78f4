"""DuckDB's exceptions as this package's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from lakedbapi import errors
from lakedbapi.engine.base import UnknownRelationError

CANCELLED = "The statement was cancelled."


class UnnamedFileError(errors.OperationalError):
    """A file could not be read or written, and the error does not tell which."""


# The first match counts: DuckDB's classes are derived from PEP 249's, so the specific ones come first.
_CLASSES: tuple[tuple[str, type[errors.DatabaseError]], ...] = (
    ("ParserException", errors.ProgrammingError),
    ("SyntaxException", errors.ProgrammingError),
    ("CatalogException", errors.ProgrammingError),
    ("BinderException", errors.ProgrammingError),
    ("PermissionException", errors.ProgrammingError),
    ("ConstraintException", errors.IntegrityError),
    ("ConversionException", errors.DataError),
    ("OutOfRangeException", errors.DataError),
    ("TypeMismatchException", errors.DataError),
    ("InvalidTypeException", errors.DataError),
    ("InvalidInputException", errors.DataError),
    ("SequenceException", errors.DataError),
    ("HTTPException", errors.OperationalError),
    ("IOException", errors.OperationalError),
    ("OutOfMemoryException", errors.OperationalError),
    ("ConnectionException", errors.OperationalError),
    ("TransactionException", errors.OperationalError),
    ("SerializationException", errors.OperationalError),
    ("NotImplementedException", errors.NotSupportedError),
    ("DependencyException", errors.ProgrammingError),
    ("FatalException", errors.InternalError),
    ("InternalException", errors.InternalError),
    ("IntegrityError", errors.IntegrityError),
    ("DataError", errors.DataError),
    ("NotSupportedError", errors.NotSupportedError),
    ("ProgrammingError", errors.ProgrammingError),
    ("OperationalError", errors.OperationalError),
)

_FILE_ERRORS = frozenset({"IOException", "HTTPException", "InvalidInputException", "SerializationException"})
_CORRUPT = re.compile(
    r"magic bytes|too small|read enough bytes|parquet (file|reader)|TProtocolException|snappy|zstd|corrupt|decompress"
    r"|thrift|footer",
    re.IGNORECASE,
)
_KEYS = re.compile(r"AES tag|is encrypted, but")
_MISSING = re.compile(
    r"No files found that match the pattern|No such file|404|FileNotFound|does not exist on the file",
    re.I,
)
_UNOPENED = re.compile(r"Cannot open file")
_PATH = re.compile(r"""["']([^"']*\.parquet|[^"']*/[^"']*)["']""")
_STREAM = re.compile(
    r"(?:get_next|stream registered as .*?) failed(?:\(\))?: \w+: (.*?)\.? Detail: Python exception", re.DOTALL
)
_FED = re.compile(r"(?:get_next|stream registered as .*?) failed", re.DOTALL)
# With a blank line after each part since Python 3.12.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n+(?:  .*\n)+(\S.*)", re.DOTALL)
# What the views of this engine are made of; a reader did not write it and cannot use it.
_INTERNAL_LINE = re.compile(r"\n+LINE \d+:.*", re.DOTALL)
_STACK_TRACE = re.compile(r"\s*Stack Trace:.*", re.DOTALL)
# `x IN (?)`, or `x = ?`, with a list for the parameter.
_LIST = re.compile(r"cast \(.*[^\]] -> .*\[\]\)|Type (\S+) with value .* can't be cast to the destination type \1\[\]")
_INTERNAL_TEXT = re.compile(r"_lake_|read_parquet\(")


_UNKNOWN_FUNCTION = re.compile(r"(?:Function|Macro) with name (.*?) does not exist!", re.DOTALL)
_UNKNOWN_NAME = re.compile(r"Table with name (.*?) does not exist!", re.DOTALL)
_UNKNOWN_SCHEMA = re.compile(r'Table with name "?(.*?)"? does not exist because schema', re.DOTALL)


@contextmanager
def mapped(broken: Mapping[str, errors.Error] = {}) -> Iterator[None]:
    """Raise this package's error in place of DuckDB's.

    `broken` has the errors of views that are not defined, by casefolded name, for a statement that misses one.
    """
    try:
        yield
    except errors.Error:
        raise
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
        raise _deepest(translate(error), dict(broken)) from error


def _deepest(error: errors.Error, broken: dict[str, errors.Error]) -> errors.Error:
    """Why the view is not there that `error` misses: perhaps because another one is not."""
    if function := _UNKNOWN_FUNCTION.search(str(error)):
        keys = [f"{function.group(1).casefold()}{ending}" for ending in ("()", "(table)")]
        error = next((broken[key] for key in keys if key in broken), error)
    while (found := _UNKNOWN_NAME.search(str(error))) and (cause := broken.pop(found.group(1).casefold(), None)):
        error = cause
    return error


def translate(error: BaseException) -> errors.Error:
    """The error to raise for one that DuckDB, or a stream that it fed, raised."""
    message = _own_text(str(error))
    if isinstance(error, duckdb.InterruptException) or "INTERRUPT" in message or "Interrupted!" in message:
        return errors.OperationalError(CANCELLED)
    if isinstance(error, duckdb.Error):
        return _of_duckdb(error, message)
    if _FED.search(str(error)):
        # What failed is what DuckDB read. It says so with a class only as long as it has no row to give.
        return _shaped(errors.DataError, message, file=True)
    for name, kind in _CLASSES:
        # An error in a running stream arrives as text only: "Conversion Error: …".
        title = re.sub(r"(?<!^)([A-Z])", r" \1", name.removesuffix("Exception")) + " Error: "
        if title in message:
            return _shaped(kind, message[message.index(title) :], file=name in _FILE_ERRORS)
    return UnnamedFileError(message) if _CORRUPT.search(message) else errors.OperationalError(message)


def of_definition(what: str, error: duckdb.Error) -> errors.Error:
    """As `translate`, for what a catalog defines: what is wrong with it, not where in a text of this engine."""
    found = translate(error)
    if isinstance(found, UnknownRelationError):
        return found
    return type(found)(f"{what}: {_INTERNAL_LINE.sub('', str(found))}")


def _own_text(message: str) -> str:
    """An error of a stream or filesystem that DuckDB used in Python, without the traceback around it."""
    inner = _STREAM.search(message)
    if inner:
        return inner.group(1)
    *_, last = [None, *_TRACEBACK.finditer(message)]
    return last.group(1).strip() if last else message


def _not_found(path: str, reason: str) -> errors.OperationalError:
    """DuckDB finds no file either where this process may not look for it."""
    try:
        os.stat(path)
    except PermissionError as error:
        return unopened(path, error)
    except (OSError, ValueError):
        pass
    return missing(path, reason)


def missing(path: str, reason: object) -> errors.OperationalError:
    return errors.OperationalError(
        f"Data file {path!r} cannot be opened: {reason}. The catalog lists it, so something else than this catalog"
        " removed or moved it (VACUUM does that to old versions). Restore it, or read a snapshot that does not need it."
    )


def unopened(path: str, reason: object) -> errors.OperationalError:
    return errors.OperationalError(
        f"Data file {path!r} cannot be opened: {reason}. Nothing is known to be wrong with it: give this process what"
        " it lacks, and run the statement again."
    )


def corrupt(path: str, reason: object) -> errors.DamagedFileError:
    reason = " ".join(str(reason).split())
    return errors.DamagedFileError(
        f"Data file {path!r} is not a readable Parquet file: {reason}. Restore it from a copy, or read a snapshot that"
        " does not need it."
    )


def _without_key(path: str) -> errors.DamagedFileError:
    return errors.DamagedFileError(
        f"Data file {path!r} is encrypted, but the catalog has no key for it. Restore the file's entry in the catalog"
        " from a copy."
    )


def _of_duckdb(error: duckdb.Error, message: str) -> errors.Error:
    names = [cls.__name__ for cls in type(error).__mro__]
    for name, kind in _CLASSES:
        if name in names:
            return _shaped(kind, message, file=name in _FILE_ERRORS)
    return _shaped(errors.DatabaseError if _PATH.search(message) else UnnamedFileError, message, file=True)


def _shaped(kind: type[errors.DatabaseError], message: str, *, file: bool = False) -> errors.Error:
    """`file` tells that the error may be about a data file, rather than about a value."""
    if _INTERNAL_TEXT.search(message):
        message = _INTERNAL_LINE.sub("", message)
    found = _PATH.search(message) if file else None
    reason = message.replace(found.group(1), "") if found else ""  # a path may have any words in it, even 404
    if found and _MISSING.search(reason):
        return _not_found(found.group(1), message)
    if found and _UNOPENED.search(reason):
        return unopened(found.group(1), message)
    if found and _CORRUPT.search(reason):
        return corrupt(found.group(1), message)
    if file and _KEYS.search(reason or message):
        return UnnamedFileError(message) if found is None else _without_key(found.group(1))
    if kind is errors.InternalError:
        message = _STACK_TRACE.sub("", message) + " (a fault of DuckDB: write the statement in another way)"
    if _LIST.search(message):
        message += "\nTo compare with the elements of a list, write x IN ? without parentheses, or x = ANY(?)."
    if "Out of Memory" in message:
        message += " Give the process more memory, or select fewer rows or columns."
    if unknown := _UNKNOWN_NAME.search(message):
        return _unknown(message, (unknown.group(1),))
    if unknown := _UNKNOWN_SCHEMA.search(message):
        return _unknown(message, tuple(unknown.group(1).split(".")))
    return kind(message)


def _unknown(message: str, parts: tuple[str, ...]) -> UnknownRelationError:
    error = UnknownRelationError(message)
    error.parts = parts
    return error
