"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE, RESTORE: from statements to staged row changes."""

from lakedbapi.dml.batch import execute_many
from lakedbapi.dml.commit import commit, discard
from lakedbapi.dml.delete import delete, truncate
from lakedbapi.dml.explain import explain
from lakedbapi.dml.insert import append, insert
from lakedbapi.dml.merge import merge
from lakedbapi.dml.restore import restore
from lakedbapi.dml.update import update

__all__ = [
    "append",
    "commit",
    "delete",
    "discard",
    "execute_many",
    "explain",
    "insert",
    "merge",
    "restore",
    "truncate",
    "update",
]
