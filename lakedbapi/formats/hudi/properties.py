"""`.hoodie/hoodie.properties`: what a table says of itself, and what of that cannot be read here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lakedbapi.errors import DataError, NotSupportedError

FILE = ".hoodie/hoodie.properties"
TABLE_VERSIONS = {6: 1, 8: 2, 9: 2}
"""Table version -> the version of its timeline's layout."""
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*\s*[=:\s]\s*")
_PLAIN_KEYS = re.compile(r"^(SIMPLE|COMPLEX)(_AVRO)?$|\.(Simple|Complex)(Avro)?KeyGenerator$")
"""Key generators whose partition path is the values of the partition columns as they are."""


@dataclass(frozen=True)
class Properties:
    """`values` by key. `root` is the table's directory, for messages."""

    root: str
    values: Mapping[str, str]

    @classmethod
    def parse(cls, root: str, data: bytes) -> Properties:
        """From the text of a Java properties file."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{root}{FILE}: it is no text: {error}") from error
        text = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t]*", r"\1", text)  # a line that goes on
        values: dict[str, str] = {}
        for line in text.splitlines():
            line = line.lstrip()
            if line and line[0] not in "#!":
                separator = _SEPARATOR.search(line)
                key, value = (line[: separator.start()], line[separator.end() :]) if separator else (line, "")
                values[_unescaped(key)] = _unescaped(value)
        return cls(root, values)

    def check(self) -> None:
        """NotSupportedError for what cannot be read right, DataError for properties that say too little."""
        for name in ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version"):
            if name not in self.values:
                raise DataError(f"{self.root}{FILE}: it has no {name}")
        version = self.values["hoodie.table.version"]
        layout = TABLE_VERSIONS.get(int(version)) if version.isdecimal() else None
        if layout is None:
            known = ", ".join(map(str, TABLE_VERSIONS))
            raise self._refused(f"table version {version}", f"versions {known} can be read: upgrade it with Hudi")
        if self.values.get("hoodie.timeline.layout.version", str(layout)) != str(layout):
            raise DataError(f"{self.root}{FILE}: table version {version} needs hoodie.timeline.layout.version={layout}")
        if self._is_on("hoodie.datasource.write.drop.partition.columns"):
            raise self._refused(
                "hoodie.datasource.write.drop.partition.columns=true (partition columns only in paths)",
                "write it with the columns in the files",
            )
        if "hoodie.bootstrap.base.path" in self.values and self._is_on("hoodie.bootstrap.index.enable", True):
            raise self._refused("hoodie.bootstrap.base.path (rows outside of the table)", "cluster it with Spark")
        base_format = self.values.get("hoodie.table.base.file.format", "PARQUET")
        if base_format.upper() not in ("PARQUET", "LANCE"):
            raise self._refused(f"hoodie.table.base.file.format={base_format}", "only PARQUET and LANCE can be read")
        if len(self._list("hoodie.table.ordering.fields")) > 1:
            raise self._refused("several hoodie.table.ordering.fields", "only one ordering field can be merged by")

    def _refused(self, feature: str, way_out: str) -> NotSupportedError:
        return NotSupportedError(f"{self.root}: Hudi tables with {feature} cannot be read here; {way_out}")

    @property
    def is_merge_on_read(self) -> bool:
        return self.values["hoodie.table.type"].upper() == "MERGE_ON_READ"

    @property
    def has_meta_columns(self) -> bool:
        return self._is_on("hoodie.populate.meta.fields", True)

    @property
    def timeline_directory(self) -> str:
        """Full path of the directory that has the instants, ending in `/`."""
        if self.layout == 1:
            return f"{self.root}.hoodie/"
        return f"{self.root}.hoodie/{self.values.get('hoodie.timeline.path', 'timeline').strip('/')}/"

    @property
    def layout(self) -> int:
        return TABLE_VERSIONS[int(self.values["hoodie.table.version"])]

    @property
    def is_local_time(self) -> bool:
        """Whether instants are in the time zone of whoever writes, else in UTC."""
        return self.values.get("hoodie.table.timeline.timezone", "").upper() == "LOCAL"

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        # `name:type` is how some key generators note what they do with the column.
        return tuple(name.partition(":")[0] for name in self._list("hoodie.table.partition.fields"))

    @cached_property
    def record_key(self) -> tuple[str, ...]:
        return self._list("hoodie.table.recordkey.fields")

    @property
    def has_plain_partitions(self) -> bool:
        """Whether a partition's path tells the values of the partition columns."""
        keys = self.values.get("hoodie.table.keygenerator.type") or self.values.get("hoodie.table.keygenerator.class")
        return bool(self.partition_columns) and _PLAIN_KEYS.search(keys or "") is not None

    @property
    def has_hive_style_paths(self) -> bool:
        return self._is_on("hoodie.datasource.write.hive_style_partitioning")

    @property
    def has_encoded_paths(self) -> bool:
        return self._is_on("hoodie.datasource.write.partitionpath.urlencode")

    def _is_on(self, name: str, default: bool = False) -> bool:
        return self.values.get(name, str(default)).strip().lower() == "true"

    def _list(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.values.get(name, "").split(",") if part.strip())


def _unescaped(text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(replacement, text)
