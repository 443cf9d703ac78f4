"""Where a file that no snapshot of a table has is surely nobody's.

Tables may share directories: `write.data.path` and `write.metadata.path` can be set to the same place, and one table
can lie in another one's. A file there may be another table's, in this catalog or in one that is not known here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakedbapi.errors import Error, OperationalError
from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.table import TableVersion

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.sources import Namespace, Source


class UnknownTerritoryError(OperationalError):
    """Nobody can tell where another table of the catalog has its files."""


def unclaimed(files: Iterable[str], version: TableVersion, source: Source) -> set[str]:
    """Those of the files, by full path, that lie below the table's own directory and where no other table of the
    catalog has its files. The others are looked at only where there is something to find.

    UnknownTerritoryError when one of these cannot be read, and the catalog does not say where it lies.
    """
    own = _inside(version.paths, version.metadata.location)
    found = {file for file in files if file.startswith(own)}
    if not found:
        return found
    taken = [place for place in _others(source, version.name) if place.startswith(own)]
    return {file for file in found if not file.startswith(tuple(taken))}


def _others(source: Source, name: str) -> Iterable[str]:
    """The directories of the other tables. One that cannot be read is where its metadata is."""
    for namespace in source.namespaces():
        for table in source.tables(namespace):
            if ".".join((*namespace, table)) == name:
                continue
            try:
                loaded = source.load(namespace, table)
            except Error as error:
                yield _seat(source, namespace, table, error)
                continue
            if loaded is not None:
                places = Places.of(loaded.metadata)
                yield from (_inside(loaded.paths, place) for place in (places.location, places.data, places.metadata))


def _seat(source: Source, namespace: Namespace, table: str, error: Error) -> str:
    """The directory of a table by the place of its metadata, which is `metadata/` in it."""
    location = source.metadata_location(namespace, table)
    if location is None:
        raise UnknownTerritoryError(
            f"no file that no snapshot has is removed, since it could be one of table {'.'.join((*namespace, table))}, "
            f"which cannot be read: {error}. Mend that table, or let the catalog forget it"
        ) from error
    return _inside(Paths(), posixpath.dirname(posixpath.dirname(location)))


def _inside(paths: Paths, directory: str) -> str:
    return paths.full(directory).rstrip("/") + "/"
