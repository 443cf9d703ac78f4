"""Names that a catalog had, so that a table is looked up by its name where else all names would be listed.

Only what was listed is kept, since services that ignore case know a table by more names than its own. Others may have
dropped it since: it is still to be asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from lakedbapi.formats.iceberg.sources import Namespace


class Names:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._namespaces: dict[str, Namespace] = {}
        self._tables: dict[int, Mapping[str, str]] = {}

    def keep_namespaces(self, namespaces: Iterable[Namespace]) -> None:
        """All that there are."""
        with self._lock:
            self._namespaces = {".".join(namespace).casefold(): namespace for namespace in namespaces}

    def keep_tables(self, schema: int, names: Mapping[str, str]) -> None:
        """All that a schema has, by their casefolded names."""
        with self._lock:
            self._tables[schema] = names

    def namespace(self, name: str) -> Namespace | None:
        with self._lock:
            return self._namespaces.get(name.casefold())

    def table(self, schema: int, name: str) -> str | None:
        with self._lock:
            return self._tables.get(schema, {}).get(name.casefold())
