"""The contract of branches and tags, for formats whose tables can have them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.refs import NewRef


class Refs(ABC):
    """Of the tables of one catalog. Each change is a commit of its own; ProgrammingError when it cannot be."""

    @abstractmethod
    def put(self, table: TableInfo, ref: NewRef) -> None:
        """Give a snapshot a name."""

    @abstractmethod
    def drop(self, table: TableInfo, kind: str, name: str, *, if_exists: bool) -> None:
        """Take a name away; its snapshots stay until they expire."""

    @abstractmethod
    def fast_forward(self, table: TableInfo, branch: str, to: str) -> tuple[int | None, int]:
        """Let `branch` name the snapshot of the branch or tag `to`, which must be made of the branch's own.

        A branch that is not there is made. Returns the ids of its snapshot before and after.
        """
