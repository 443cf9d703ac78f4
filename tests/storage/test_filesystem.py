"""Storage on local files, in memory and on S3: the same promises everywhere."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lakedbapi.errors import NotSupportedError, OperationalError
from lakedbapi.storage import exclusive
from lakedbapi.storage.filesystem import Storage


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(params=["local", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "local":
        yield Storage.of(str(tmp_path / "lake"))
    elif request.param == "memory":
        yield Storage.of(f"memory://lake-{uuid.uuid4().hex}/data")
    else:
        options = {"key": "x", "secret": "y", "endpoint_url": request.getfixturevalue("s3_endpoint")}
        bucket = f"lake-{uuid.uuid4().hex}"
        storage = Storage.of(f"s3://{bucket}/data", options)
        storage.filesystem.mkdir(bucket)
        yield storage


def test_paths_are_joined_below_the_root(storage: Storage) -> None:
    assert storage.root.endswith("/")
    assert storage.join("main/", "t/", "a.parquet") == f"{storage.root}main/t/a.parquet"
    assert storage.join("main", "t") == f"{storage.root}main/t"


def test_what_was_written_is_read_and_listed(storage: Storage) -> None:
    path = storage.join("main/", "t/", "ü a%20.parquet")
    storage.write_exclusive(path, b"content")
    assert storage.exists(path)
    assert storage.size(path) == 7
    assert storage.read_bytes(path) == b"content"
    (row,) = storage.list().to_pylist()
    assert (row["path"], row["size"]) == (path, 7)
    assert abs(row["mtime"] - datetime.now(timezone.utc)) < timedelta(minutes=5)
    assert storage.list(storage.join("other/")).num_rows == 0


@pytest.mark.parametrize("count", [0, 1, 20])
def test_many_files_are_written_together(storage: Storage, count: int) -> None:
    files = {storage.join(f"d{i % 3}/", f"f{i}"): b"%d" % i for i in range(count)}
    storage.write_all_exclusive(files)
    assert {path: storage.read_bytes(path) for path in files} == files
    if files:
        with pytest.raises(FileExistsError):
            storage.write_all_exclusive({**files, storage.join("new"): b""})
    assert {path: storage.read_bytes(path) for path in files} == files


def test_a_file_is_never_overwritten(storage: Storage) -> None:
    path = storage.join("a")
    storage.write_exclusive(path, b"first")
    with pytest.raises(FileExistsError):
        storage.write_exclusive(path, b"second")
    assert storage.read_bytes(path) == b"first"
    assert storage.list().num_rows == 1


def test_one_of_several_writers_wins(storage: Storage) -> None:
    path = storage.join("_log", "1.json")
    contents = [b"%d" % number * 10_000 for number in range(8)]

    def write(data: bytes) -> bool:
        try:
            storage.put_if_absent(path, data)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, contents))
    assert sum(won) == 1
    assert storage.read_bytes(path) == contents[won.index(True)]
    assert storage.list().column("path").to_pylist() == [path]


def test_overwriting_leaves_just_the_new_file(storage: Storage) -> None:
    path = storage.join("_log", "_last")
    storage.overwrite(path, b"first")
    storage.overwrite(path, b"second")
    assert storage.read_bytes(path) == b"second"
    assert storage.list().num_rows == 1


def answered(status: int, code: str) -> OSError:
    """What s3fs makes of a store's answer."""
    s3 = pytest.importorskip("s3fs.errors")
    exceptions = pytest.importorskip("botocore.exceptions")
    answer = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    found = s3.translate_boto_error(exceptions.ClientError(answer, "PutObject"))
    assert isinstance(found, OSError)
    return found


class ClientOSError(OSError):
    """As libraries for HTTP raise it: what the network did is no answer of the store."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (PermissionError("no"), False),
        (OSError(28, "No space left on device"), False),
        (ConnectionResetError("gone"), True),
        (TimeoutError("nothing yet"), True),
        (ClientOSError("gone"), True),
        (RuntimeError("odd"), True),
        ((403, "AccessDenied"), False),
        ((404, "NoSuchBucket"), False),
        ((409, "ConditionalRequestConflict"), False),
        ((500, "InternalError"), True),
        ((502, "502"), True),
        ((503, "SlowDown"), False),
        ((504, "504"), True),
        ((400, "RequestTimeout"), True),
    ],
)
def test_a_put_may_arrive_yet_unless_the_store_said_no(error: Any, expected: bool) -> None:
    assert exclusive.may_arrive(answered(*error) if isinstance(error, tuple) else error) is expected


class Busy(MemoryFileSystem):  # type: ignore[misc]
    """S3 tells all but one of those that put a file at the same time to try again."""

    protocol = "s3"
    refusals = 0
    puts = 0

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        self.puts += 1
        if path.endswith("1.json") and self.refusals:
            self.refusals -= 1
            raise answered(409, "ConditionalRequestConflict")
        super().pipe_file(path, value, mode=mode, **kwargs)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_put_that_others_get_in_the_way_of_is_tried_again(is_there: bool) -> None:
    filesystem = Busy(skip_instance_cache=True)
    storage = Storage(f"memory://lake-{uuid.uuid4().hex}/", filesystem)
    path = storage.join("1.json")
    if is_there:
        storage.put_if_absent(path, b"theirs")
    filesystem.refusals = 2
    if is_there:
        with pytest.raises(FileExistsError):
            storage.put_if_absent(path, b"ours")
    else:
        storage.put_if_absent(path, b"ours")
    assert storage.read_bytes(path) == (b"theirs" if is_there else b"ours")
    filesystem.refusals = 1000
    with pytest.raises(OperationalError, match="ConditionalRequestConflict"):
        storage.put_if_absent(path, b"again")


def test_a_store_is_tried_once() -> None:
    filesystem = Busy(skip_instance_cache=True)
    storage = Storage(f"memory://lake-{uuid.uuid4().hex}/", filesystem)
    storage.put_if_absent(storage.join("0.json"), b"")
    before = filesystem.puts
    storage.put_if_absent(storage.join("2.json"), b"")
    assert filesystem.puts == before + 1


class LooksFirst(MemoryFileSystem):  # type: ignore[misc]
    """As most filesystems: creating exclusively is looking, then writing."""

    protocol = "looksfirst"


class IgnoresConditions(MemoryFileSystem):  # type: ignore[misc]
    """An S3 of old: it has never heard of If-None-Match."""

    protocol = ("s3", "s3a")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        super().pipe_file(path, value)


@pytest.mark.parametrize("filesystem", [LooksFirst(), IgnoresConditions()])
def test_a_store_that_could_overwrite_a_commit_is_refused(filesystem: MemoryFileSystem) -> None:
    storage = Storage(f"memory://lake-{uuid.uuid4().hex}/", filesystem)
    with pytest.raises(NotSupportedError, match="read_only"):
        storage.put_if_absent(storage.join("1.json"), b"x")
    assert storage.list().num_rows == 0


@pytest.mark.parametrize("protocol", ["s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"])
def test_stores_that_keep_to_the_condition_take_commits(protocol: str) -> None:
    keeps_to_it = type("KeepsToIt", (MemoryFileSystem,), {"protocol": protocol})
    storage = Storage(f"memory://lake-{uuid.uuid4().hex}/", keeps_to_it())
    path = storage.join("1.json")
    storage.put_if_absent(path, b"x")
    with pytest.raises(FileExistsError):
        storage.put_if_absent(path, b"y")
    assert storage.read_bytes(path) == b"x"
    assert storage.list().num_rows == 1  # Nothing is left of the trial.


def test_missing_files_can_be_deleted(storage: Storage) -> None:
    paths = [storage.join(name) for name in ("a", "b", "c")]
    storage.write_exclusive(paths[0], b"")
    storage.write_exclusive(paths[2], b"")
    storage.delete(paths)
    storage.delete(paths[:1])
    storage.delete([])
    assert storage.list().num_rows == 0


def test_errors_name_the_path(storage: Storage) -> None:
    missing = storage.join("missing")
    with pytest.raises(OperationalError, match="missing: reading it failed"):
        storage.read_bytes(missing)
    with pytest.raises(OperationalError, match="missing"):
        storage.size(missing)
    assert not storage.exists(missing)


def test_directories_can_be_made_twice(storage: Storage) -> None:
    storage.makedirs(storage.join("a/b/"))
    storage.makedirs(storage.join("a/b/"))


def test_local_paths_are_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("x", f"{tmp_path}/x/", f"file://{tmp_path}/x"):
        storage = Storage.of(url)
        assert storage.root == f"{os.getcwd()}/x/"
        assert storage.is_local


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(OperationalError, match="nosuch://"):
        Storage.of("nosuch://bucket/x")


def test_secrets_are_not_shown(s3_endpoint: str) -> None:
    storage = Storage.of("s3://nobucket/data", {"key": "x", "secret": "hunter2", "endpoint_url": s3_endpoint})
    with pytest.raises(OperationalError) as caught:
        storage.read_bytes(storage.join("a"))
    assert "hunter2" not in f"{storage!r} {caught.value!r}"


def test_what_others_write_is_found_although_it_was_not_there_when_the_directory_was_listed(s3_endpoint: str) -> None:
    options = {"key": "x", "secret": "y", "endpoint_url": s3_endpoint}
    bucket = f"lake-{uuid.uuid4().hex}"
    ours = Storage.of(f"s3://{bucket}/data", options)
    ours.filesystem.mkdir(bucket)
    ours.write_exclusive(ours.join("t/", "a"), b"a")
    assert len(ours.entries(ours.join("t/"))) == len(ours.list()) == 1
    theirs = fsspec.filesystem("s3", skip_instance_cache=True, **options)
    theirs.pipe_file(f"{bucket}/data/t/b", b"bb")
    path = ours.join("t/", "b")
    assert ours.read_bytes(path) == b"bb"
    assert (ours.exists(path), ours.size(path)) == (True, 2)
    with ours.filesystem.open(path) as file:  # As an engine does.
        assert file.read() == b"bb"


def test_the_extra_of_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(NotSupportedError, match=r"pip install 'lakedbapi\[s3\]'"):
        Storage.of("s3://bucket/lake", {"endpoint_url": uuid.uuid4().hex})
