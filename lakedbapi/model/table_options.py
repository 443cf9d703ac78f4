"""The options of tables that are the same in all formats: how files lose rows, and how they are compressed."""

from __future__ import annotations

from lakedbapi.errors import ProgrammingError

WRITE_MODE = "lake.write_mode"
DELETED_FRACTION = "lake.rewrite_deleted_fraction"
MAX_ROWS = "lake.rewrite_max_rows"

CODEC = "parquet_compression"
CODEC_LEVEL = "parquet_compression_level"
PARQUET_VERSION = "parquet_version"
CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")

MERGE_ON_READ = "merge-on-read"
COPY_ON_WRITE = "copy-on-write"
AUTO = "auto"


def check_option(name: str, value: str | None, called: str | None = None) -> None:
    """ProgrammingError for a value that one of these options cannot have. Other options are not looked at.

    `called` is what a format calls the option.
    """
    if value is None:
        return
    name = name.casefold()
    if name == CODEC and value.casefold() not in CODECS:
        raise _refused(called or name, value, f"{', '.join(CODECS[:-1])} or {CODECS[-1]}")
    if name == CODEC_LEVEL and not value.strip().isdecimal():
        raise _refused(called or name, value, "a whole number")
    if name == PARQUET_VERSION and parquet_version(value) is None:
        raise _refused(called or name, value, "1 or 2")
    if name == WRITE_MODE and value.casefold() not in (MERGE_ON_READ, COPY_ON_WRITE, AUTO):
        raise _refused(name, value, f"{MERGE_ON_READ}, {COPY_ON_WRITE} or {AUTO}")
    if name == DELETED_FRACTION and not _is_fraction(value):
        raise _refused(name, value, "a number from 0 to 1")
    if name == MAX_ROWS and not value.strip().isdecimal():
        raise _refused(name, value, "a number of rows")


def parquet_version(value: str) -> str | None:
    """`V1` or `V2`; None for a version that there is not."""
    number = value.strip().casefold().removeprefix("v")
    return f"V{number}" if number in ("1", "2") else None


def _is_fraction(value: str) -> bool:
    try:
        return 0 <= float(value) <= 1
    except ValueError:
        return False


def _refused(name: str, value: str, wanted: str) -> ProgrammingError:
    return ProgrammingError(f"option {name} cannot be {value!r}: set it to {wanted}")
