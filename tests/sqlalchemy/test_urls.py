"""create_engine takes every URL that connect() takes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sqlalchemy import create_engine, exc, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from tests.effort import cpu_seconds


def test_every_backend_is_this_dialect(entry_point: str) -> None:
    engine = create_engine(f"{entry_point.replace('.', '+')}://host/db")
    assert (engine.dialect.name, engine.dialect.driver) == ("lake", "lakedbapi")
    assert make_url(str(engine.url)) == engine.url


def test_paths_are_relative_with_three_slashes_and_absolute_with_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with create_engine("lake:///here", future=True).begin() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER)"))
    with create_engine(f"lake:///{tmp_path}/here", future=True).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM t")).scalar() == 0
    assert (tmp_path / "here" / "catalog.sqlite").exists()


def test_a_catalog_file_and_its_data_path(tmp_path: Path) -> None:
    url = f"ducklake+sqlite:///{tmp_path}/shop.sqlite?data_path={tmp_path}/files/"
    with create_engine(url, future=True).begin() as connection:
        connection.execute(text("CREATE TABLE t AS SELECT range AS a FROM range(1000)"))
    assert list((tmp_path / "files").rglob("*.parquet"))


def test_without_a_catalog_there_is_nothing_until_attach(tmp_path: Path) -> None:
    engine = create_engine("lake://", connect_args={"allow_attach": True}, future=True)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1
        connection.execute(text(f"ATTACH 'ducklake:sqlite:{tmp_path}/a.sqlite' AS a (DATA_PATH '{tmp_path}/a/')"))
        connection.execute(text("CREATE TABLE a.main.t AS SELECT 42 AS x"))
        assert connection.execute(text("SELECT x FROM a.main.t")).scalar() == 42


def test_a_password_is_never_shown() -> None:
    engine = create_engine("ducklake+postgresql://me:hunter2@nowhere.invalid/db?data_path=/tmp/x&connect_timeout=1")
    assert "hunter2" not in repr(engine) + repr(engine.url)
    with pytest.raises(exc.DBAPIError) as caught:
        engine.connect()
    assert "hunter2" not in str(caught.value)


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(exc.DBAPIError, match="unknown option 'colour'"):
        create_engine(f"lake:///{tmp_path}/shop?colour=red").connect()


def test_connecting_is_cheap(tmp_path: Path) -> None:
    engine = create_engine(f"lake:///{tmp_path}/shop", poolclass=NullPool, future=True)
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER)"))
        connection.commit()
    baseline = cpu_seconds(lambda: duckdb.connect(":memory:").close(), 5)
    assert cpu_seconds(lambda: engine.connect().close(), 100) < 4 * baseline
