from __future__ import annotations

import importlib.util
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from _pytest.tmpdir import tmp_path

import lakedbapi
from tests.formats.needs import need_pyiceberg

if TYPE_CHECKING:
    from tests.formats.iceberg.writing import Lake

__all__ = ["tmp_path"]  # One for each test: the manifests that tests write by hand have the same names in all.

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "iceberg"


IS_INSTALLED = importlib.util.find_spec("pyiceberg") is not None


class WithoutIceberg(pytest.Module):
    """A test module that cannot be imported."""

    def collect(self) -> NoReturn:
        need_pyiceberg(whole_module=True)
        raise AssertionError("unreachable")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if IS_INSTALLED else WithoutIceberg.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a table that another program wrote, and gives the folder of its `metadata`."""
    folder = tmp_path_factory.mktemp("golden")

    def unpack(name: str) -> Path:
        archive = GOLDEN / f"{name}.tar.gz"
        if not archive.exists():
            assert not os.environ.get("LAKE_CI"), f"{archive} is missing"
            pytest.skip(f"needs the golden table {archive}")
        place = folder / name
        if not place.exists():
            with tarfile.open(archive) as tar:
                tar.extractall(place, filter="data")
        (metadata,) = place.glob("**/metadata")
        return metadata

    return unpack


@pytest.fixture(params=[2, 3])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """An empty catalog, whose tables get one format version and then the other."""
    from tests.formats.iceberg.writing import Lake  # Needs pyiceberg.

    place = Lake(tmp_path, request.param)
    yield place
    place.close()


@pytest.fixture
def lake(place: Lake) -> lakedbapi.Connection:
    return place.connect()
