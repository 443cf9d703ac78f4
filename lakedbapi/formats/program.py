"""What metadata say of the program that wrote them."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def own_version() -> str | None:
    """The installed version of this package; None when it is run from a source tree.

    To look it up takes as long as all else that makes a small commit.
    """
    try:
        return version("lakedbapi")
    except PackageNotFoundError:
        return None


def own_name(separator: str) -> str:
    """`lakedbapi`, and where it is known its version behind `separator`."""
    known = own_version()
    return "lakedbapi" if known is None else f"lakedbapi{separator}{known}"
