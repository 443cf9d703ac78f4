"""The Hudi readers of the package `hudi` (hudi-rs): how its tables are opened, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakedbapi.errors import DataError, Error, NotSupportedError, OperationalError
from lakedbapi.storage.filesystem import Storage

OLDEST = (0, 5)
"""Older ones merge log files by no other order than that of the ordering field, and skip slices without a base file."""

_NOT_SUPPORTED = ("support", "cannot reproduce", "no reader here")
_UNREACHABLE = ("not found", "ObjectStore", "Storage error", "Generic ", "permission", "timed out")
_S3_OPTIONS = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "endpoint_url": "aws_endpoint",
    "client_kwargs.endpoint_url": "aws_endpoint",
    "client_kwargs.region_name": "aws_region",
}
"""What s3fs calls an option -> what hudi-rs calls it."""


def load() -> Any:
    """The module `hudi`; NotSupportedError where it is not installed, or too old."""
    try:
        import hudi
    except ImportError as error:
        raise NotSupportedError(
            f"Hudi tables are read by the package hudi, which is not installed ({error}): pip install 'lakedbapi[hudi]'"
        ) from error
    version = tuple(int(part) for part in hudi.__version__.split(".")[:2])
    if version < OLDEST:
        raise NotSupportedError(
            f"Hudi tables need the package hudi {'.'.join(map(str, OLDEST))} or newer, not {hudi.__version__}: "
            "pip install --upgrade 'lakedbapi[hudi]'"
        )
    return hudi


def open_table(root: str, storage: Storage, options: Mapping[str, Any]) -> Any:
    """A `HudiTable`, pinned to the timeline as it is now. `options` are those of the fsspec filesystem."""
    with mapped(root):
        return load().HudiTable(root.rstrip("/"), dict(_storage_options(storage, options)))


@contextmanager
def mapped(path: str) -> Iterator[None]:
    """Turn what hudi-rs raises into an error of this package that names `path`."""
    try:
        yield
    except Error:
        raise
    except BaseException as error:
        if type(error).__name__ not in ("HudiCoreError", "PanicException"):
            raise
        raise _class_of(str(error))(f"{path}: {error}") from error


def _class_of(message: str) -> type[Error]:
    if any(part in message for part in _NOT_SUPPORTED):
        return NotSupportedError
    return OperationalError if any(part in message for part in _UNREACHABLE) else DataError


def _storage_options(storage: Storage, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if storage.is_local:
        return
    protocol = storage.root.partition("://")[0]
    if protocol == "memory":
        raise NotSupportedError(f"{storage.root}: hudi-rs cannot read the memory of this process: use files or a store")
    if protocol not in ("s3", "s3a"):
        return  # hudi-rs takes credentials of other stores from the environment.
    for name, value in _flat(options, ""):
        known = _S3_OPTIONS.get(name)
        if known is not None:
            yield known, str(value)
        if known == "aws_endpoint" and str(value).startswith("http://"):
            yield "aws_allow_http", "true"
    if options.get("anon") is True:
        yield "aws_skip_signature", "true"


def _flat(options: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
