"""Tables that other programs wrote, unpacked when a test asks for one."""

from __future__ import annotations

import os
import tarfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.delta.golden import GOLDEN

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of other writers are unpacked: each as the table `table` in a schema of its name."""
    if not GOLDEN.is_dir():
        reason = "the golden tables are not next to the project"
        assert os.environ.get("LAKE_CI") != "1", reason
        pytest.skip(reason)
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="session")
def golden(golden_root: Path) -> Callable[[str], Path]:
    """The directory of a table by its name in `expected.json`."""

    def unpacked(name: str) -> Path:
        directory = golden_root / name
        if not directory.exists():
            with tarfile.open(GOLDEN / "delta" / f"{name}.tar.gz") as archive:
                archive.extractall(directory)
        return directory / "table"

    return unpacked


@pytest.fixture(scope="module")
def goldens(golden_root: Path) -> Iterator[lakedbapi.Connection]:
    """A connection to all of them: those that were unpacked before a statement are there."""
    with lakedbapi.connect(f"delta:///{golden_root}", read_only=True, autocommit=True) as connection:
        yield connection


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to a directory of Delta tables; closed after the test."""
    opened: list[lakedbapi.Connection] = []

    def connected(path: Path | str, **options: object) -> lakedbapi.Connection:
        location = str(path) if "://" in str(path) else f"delta:///{path}"
        opened.append(lakedbapi.connect(location, **options))
        return opened[-1]

    yield connected
    for connection in opened:
        connection.close()


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(params=["memory", "s3"])
def remote(request: pytest.FixtureRequest) -> dict[str, object]:
    """What `connect` takes."""
    name = f"lake-{uuid.uuid4().hex}"
    if request.param == "memory":
        return {"database": f"delta+memory://{name}"}
    import s3fs

    options = {"key": "x", "secret": "y", "endpoint_url": request.getfixturevalue("s3_endpoint")}
    s3fs.S3FileSystem(**options).mkdir(name)
    return {"database": f"delta+s3://{name}/tables", "storage_options": options}
