"""Random programs on one table of a format whose tables have versions of their own: the steps that it has.

Its commits may meet more conflicts than the model predicts, since they are serializable: where it says that a commit
goes together with others, that one may also fail, but must not go through with another outcome.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from compliance.model.clients import Client, Lake
from compliance.model.program import Data
from compliance.model.random_programs import WEIGHTS, RandomPrograms
from compliance.model.tables import Tables, Verdict

OTHER_TABLES = frozenset({"create_table", "create_table_as", "drop_table", "rename_table"})


class SerializableClient(Client):
    def _outcome(self) -> tuple[Verdict, Tables]:
        verdict, merged = super()._outcome()
        alone = self.open.base == self.lake.newest or self._is_idle
        return (verdict if alone or verdict != Verdict.COMMITS else Verdict.EITHER), merged


class OneTablePrograms(RandomPrograms):
    client: ClassVar[type[Client]] = SerializableClient
    more: ClassVar[Mapping[str, int]] = {}
    """Steps that only this format has, and how often each is taken."""

    def __init__(self) -> None:
        super().__init__()
        stated = [f"'{name}' = '{value}'" for name, value in self.properties().items()]
        self.table_options = f" WITH ({', '.join(stated)})"

    def weights(self) -> Mapping[str, int]:
        left_out = OTHER_TABLES | self.left_out()
        return {kind: weight for kind, weight in {**WEIGHTS, **self.more}.items() if kind not in left_out}

    def left_out(self) -> set[str]:
        """Steps that tables of this setting do not have."""
        raise NotImplementedError

    def properties(self) -> Mapping[str, str]:
        """Of the table."""
        raise NotImplementedError

    def new_lake(self, folder: Path) -> Lake:
        """In a folder that is there and empty."""
        raise NotImplementedError

    @initialize(source=st.data())
    def set_up(self, source: Any) -> None:
        folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()), "lake")
        folder.mkdir()
        self.begin(Data(source), self.new_lake(folder))

    def check_end(self) -> None:
        if "feed" in self.steps:
            for table in self.lake.history[self.lake.newest].values():
                self.lake.check_feed(0, self.lake.newest, table)
