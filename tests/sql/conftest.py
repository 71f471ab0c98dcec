"""Small tables that pylance wrote, and connections that close themselves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest
from sql.group_support import FIRST, Pair

import lance_duck as ld
from lance_duck.duck import planner


@pytest.fixture(scope="session")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of `folder`, which copies them."""
    place = tmp_path_factory.mktemp("written_once")
    trips = lance.write_dataset(pa.table({"id": range(5), "city": list("abcab")}), place / "trips.lance")
    trips.insert(pa.table({"id": range(5, 8), "city": list("xyz")}))
    trips.tags.create("second", 2)
    trips.delete("id = 6")
    lance.write_dataset(pa.table({"value": [1.5, None]}), place / "odd name.lance")
    lance.write_dataset(pa.table({"city": list("abc"), "name": ["Aa", "Bb", "Cc"]}), place / "dim.lance")
    return place


@pytest.fixture
def folder(written_once: Path, tmp_path: Path) -> Path:
    """`trips.lance` with three versions (5, 8 and 7 rows; the second is tagged), `odd name.lance` and `dim.lance`."""
    return Path(shutil.copytree(written_once, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def connect() -> Iterator[Callable[..., ld.Connection]]:
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(ld.connect(*args, **options))


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(folder)


@pytest.fixture(scope="session")
def grouped_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of `pair`, which copies them."""
    place = tmp_path_factory.mktemp("grouped_once")
    with ld.connect(place) as con:
        con.execute(FIRST)
    return place


@pytest.fixture
def pair(grouped_once: Path, tmp_path: Path, connect: Callable[..., ld.Connection]) -> Iterator[Pair]:
    """Five tables of `id` and `n` in a folder and in a native database: `a`, `b` and `c`, and `d` and `e` in `s`."""
    folder = Path(shutil.copytree(grouped_once, tmp_path / "folder"))
    with duckdb.connect() as native:
        native.execute(FIRST)
        yield Pair(folder, connect(folder), native)


@pytest.fixture
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """A plain DuckDB connection with `lance_scan`."""
    with duckdb.connect() as connection:
        ld.register(connection)
        yield connection


@pytest.fixture
def rows() -> Callable[..., list[tuple[Any, ...]]]:
    return lambda connection, sql, *parameters: connection.execute(sql, *parameters).fetchall()


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], list[bool]]:
    """For each proposal that a function of `duck.run` is given, whether it changes the statement."""

    def observed(run: Callable[..., Any]) -> list[bool]:
        seen: list[bool] = []

        def noted(*arguments: Any) -> Any:
            rewriting = run(*arguments)
            seen.append(rewriting is not None)
            return rewriting

        rules = tuple(replace(rule, run=noted) if rule.run is run else rule for rule in planner.RULES)
        monkeypatch.setattr(planner, "RULES", rules)
        return seen

    return observed
