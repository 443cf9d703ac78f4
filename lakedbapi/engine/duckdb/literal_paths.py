"""Paths whose `*`, `?` and `[` are no wildcards, as DuckDB's readers want them written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_WILDCARDS, _ESCAPED = r"([*?\[])", r"[\1]"


def literal_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Strings of the shape of `paths`, which match nothing but these."""
    return pc.replace_substring_regex(paths, _WILDCARDS, _ESCAPED)
