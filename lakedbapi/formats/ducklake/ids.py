"""New identities: the counters that a snapshot row hands on to the next, and UUIDs of version 7."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass


@dataclass
class Counters:
    """Hands out the ids of one commit; what is left becomes the new snapshot row's counters."""

    next_catalog_id: int
    """Schemas, tables, views, macros, partitionings and sort orders share this one."""
    next_file_id: int
    """Data files, delete files and column mappings share this one."""

    def catalog_id(self) -> int:
        self.next_catalog_id += 1
        return self.next_catalog_id - 1

    def file_id(self) -> int:
        self.next_file_id += 1
        return self.next_file_id - 1


def uuid7() -> str:
    """A time-ordered UUID (RFC 9562, version 7): dashed lower-case text."""
    millis = time.time_ns() // 1_000_000
    value = (millis & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
