"""The PEP 249 exceptions, with the attributes that every error of this package carries."""

from __future__ import annotations


class Warning(Exception):
    """An important warning, such as a value that a table format can only store with loss."""


class Error(Exception):
    """Base of all errors.

    `statement` is the SQL text that failed (None outside a statement); `retryable` tells whether the same
    work may succeed when it is run again on a newer snapshot.
    """

    retryable: bool = False
    committed: frozenset[int] = frozenset()
    """Ids of tables that were committed before a commit of several, one by one, failed."""

    def __init__(self, message: str, *, statement: str | None = None) -> None:
        super().__init__(message)
        self.statement = statement


class InterfaceError(Error):
    """Misuse of a connection or cursor object."""


class DatabaseError(Error):
    """An error that is related to the database."""


class DataError(DatabaseError):
    """A value out of range, a bad cast, a corrupt file."""


class DamagedFileError(DataError):
    """A file, which the message names, is not what it should be, or has another key than its catalog says."""


class OperationalError(DatabaseError):
    """Storage, catalog, conflict or cancellation: not the programmer's fault."""


class ConflictError(OperationalError):
    """Another transaction changed the same thing first (serialization failure): roll back and retry."""

    retryable = True


class CommitUnknownError(OperationalError):
    """The connection was lost during a commit: nobody can tell here whether it took effect."""


class IntegrityError(DatabaseError):
    """A NOT NULL or CHECK constraint was violated."""


class InternalError(DatabaseError):
    """A broken invariant of this package."""


class ProgrammingError(DatabaseError):
    """Bad SQL, an unknown table, column or version, a refused statement."""


class NotSupportedError(DatabaseError):
    """The table format, or a feature of it, cannot do this."""
