"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE: from statements to staged row changes."""

from lakedbapi.dml.batch import execute_many
from lakedbapi.dml.delete import delete, truncate
from lakedbapi.dml.explain import explain
from lakedbapi.dml.flush import flush
from lakedbapi.dml.insert import append, insert
from lakedbapi.dml.merge import merge
from lakedbapi.dml.update import update

__all__ = ["append", "delete", "execute_many", "explain", "flush", "insert", "merge", "truncate", "update"]
