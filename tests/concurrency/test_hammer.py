"""Many writers of one table lose and duplicate nothing."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from concurrency import children
from concurrency.hammer import LEAST, Tally, check, create, hammer
from support.faults import Faults, now_and_then
from support.servers import s3_server

import lance_duck as ld
from lance_duck.errors import CommitConflictError

MIXED = {"append": 3, "delete": 2, "count": 3, "upsert": 3, "compact": 1}
WRITERS = 4

short_or_long = pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(WRITERS, mp_context=children.context) as pool:
        yield pool


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with s3_server() as options:
        yield options


def run(
    pool: Executor, uri: str, options: dict[str, str], what: dict[str, int], seconds: float, stale: bool
) -> Counter:
    """Let all writers hammer, check the table, and return how often each change was tried."""
    started = [pool.submit(hammer, uri, options, who, seconds, what, stale) for who in range(WRITERS)]
    tallies: list[Tally] = [future.result() for future in started]
    check(uri, options, tallies)
    return sum((tally.tried for tally in tallies), Counter())


@short_or_long
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_concurrent_processes_lose_and_duplicate_nothing(
    processes: Executor, tmp_path: Path, seconds: int, stable_row_ids: bool
) -> None:
    options = {"fsync": "false"}
    uri = str(tmp_path / "t.lance")
    create(uri, options, enable_stable_row_ids=stable_row_ids)
    tried = run(processes, uri, options, MIXED, seconds, stale=False)
    assert sum(tried[name] for name in MIXED) > sum(tried[f"{name} lost"] for name in MIXED)


@short_or_long
@pytest.mark.parametrize("what", [{"count": 1}, {"upsert": 1}, MIXED], ids=["count", "upsert", "mixed"])
def test_threads_with_stale_handles_lose_nothing(what: dict[str, int], seconds: int) -> None:
    uri = f"memory://{uuid.uuid4().hex}/t.lance"
    create(uri, {})
    with ThreadPoolExecutor(WRITERS) as pool:
        run(pool, uri, {}, what, seconds, stale=True)


@short_or_long
def test_a_store_that_fails_and_loses_responses_never_commits_twice(seconds: int) -> None:
    uri = f"memory://{uuid.uuid4().hex}/t.lance"
    create(uri, {})
    with Faults(now_and_then(0, fails=0.02, loses=0.05, repeats=0.05)), ThreadPoolExecutor(WRITERS) as pool:
        run(pool, uri, {}, MIXED, seconds, stale=False)


@short_or_long
def test_writers_on_an_object_store_lose_no_rows(s3: dict[str, str], seconds: int) -> None:
    uri = f"s3://bucket/{uuid.uuid4().hex}/t.lance"
    create(uri, s3)
    with ThreadPoolExecutor(WRITERS) as pool:
        run(pool, uri, s3, MIXED, seconds, stale=True)


@short_or_long
def test_writers_with_a_manifest_store_lose_no_rows(processes: Executor, tmp_path: Path, seconds: int) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/claims.db", "fsync": "false"}
    uri = str(tmp_path / "t.lance")
    create(uri, options)
    run(processes, uri, options, MIXED, seconds, stale=True)


@short_or_long
def test_a_reader_never_sees_a_partial_commit(tmp_path: Path, seconds: int) -> None:
    uri, options = str(tmp_path / "t.lance"), {"fsync": "false"}
    ids = list(range(20))
    ld.write_dataset(pa.table({"id": ids, "n": [0] * 20}), uri, max_rows_per_file=7, storage_options=options)
    end = time.monotonic() + seconds

    def move(who: int) -> int:
        for turn in range(LEAST, 10_000):
            if turn > 2 * LEAST and time.monotonic() > end:
                break
            dataset = ld.dataset(uri, storage_options=options)
            with suppress(CommitConflictError):
                dataset.update({"n": f"CASE WHEN id < 10 THEN n + {turn} ELSE n - {turn} END"})
            if turn % 5 == who:
                dataset.optimize.compact_files()
        return turn

    def read(_: int) -> int:
        times = 0
        while not times or not all(future.done() for future in writers):
            table = ld.dataset(uri).to_table()
            assert sorted(table["id"].to_pylist()) == ids
            assert sum(table["n"].to_pylist()) == 0
            times += 1
        return times

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(move, who) for who in range(2)]
        assert all(pool.map(read, range(2)))
        assert all(future.result() for future in writers)
