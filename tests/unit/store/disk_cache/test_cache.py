from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError, StoreError
from lance_duck.store.disk_cache import (
    BucketCache,
    CachedObject,
    DiskCache,
    FetchedPart,
    folder,
    open_cache,
    usage,
    wait_for_blocks,
)
from lance_duck.store.disk_cache import cache as module
from lance_duck.store.disk_cache.blocks import BLOCK, PAGE
from lance_duck.store.request import Bytes

SIZE: Final = 3 * BLOCK + 3 * PAGE + 11
LIMIT: Final = 1 << 30
LOGGER: Final = "lance_duck.store.disk_cache.cache"


def content(seed: int, size: int = SIZE) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


class Service:
    """An object of a store, which counts its requests."""

    def __init__(self, data: Bytes, tag: str = "a") -> None:
        self.data = data
        self.tag = tag
        self.asked = 0
        self.runs: list[tuple[int, int]] = []

    def ask(self) -> tuple[int, str]:
        self.asked += 1
        return len(self.data), self.tag

    def fetch(self, runs: Sequence[tuple[int, int]]) -> list[FetchedPart]:
        self.runs += runs
        return [FetchedPart(self.data[at : at + size], len(self.data), self.tag) for at, size in runs]

    def requests(self) -> tuple[int, int]:
        """Return the numbers of questions and fetched ranges since the last call."""
        counts = self.asked, len(self.runs)
        self.asked, self.runs = 0, []
        return counts


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def opened(root: str, service: Service, limit: int = LIMIT, key: str = "data/x") -> CachedObject:
    """Return the object as a process reads it that has just started."""
    found = BucketCache(DiskCache(root, limit), "s3://bucket", lambda _: True).object(key, key, service)
    assert found is not None
    return found


def read(cached: CachedObject, service: Service, *ranges: tuple[int, int]) -> bool:
    """Read ranges, compare them, and wait for their blocks. Returns whether the cache answered."""
    answered = read_at_once(cached, service, *ranges)
    wait_for_blocks()
    return answered


def read_at_once(cached: CachedObject, service: Service, *ranges: tuple[int, int]) -> bool:
    """Read ranges and compare them. Returns whether the cache answered."""
    pieces = cached.read(SIZE, [r[0] for r in ranges], [r[1] for r in ranges])
    if pieces is None:
        return False
    for (start, size), piece in zip(ranges, pieces, strict=True):
        assert np.array_equal(piece, service.data[start : start + size])
        assert not piece.flags.writeable or piece.base is not None
    return True


def test_a_second_read_needs_no_requests(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service)
    ranges = ((5, 10), (BLOCK - 3, 2 * BLOCK), (SIZE - 4, 4))
    for expected in ((0, 2), (0, 0)):
        assert read(cached, service, *ranges)
        assert service.requests() == expected


def test_another_process_asks_once_and_fetches_nothing(root: str) -> None:
    service = Service(content(0))
    read(opened(root, service), service, (0, SIZE))
    service.requests()
    cached = opened(root, service)
    for expected in ((1, 0), (0, 0)):
        assert read(cached, service, (7, BLOCK), (SIZE - 100, 50))
        assert service.requests() == expected


def test_scattered_reads_fetch_their_pages_only(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service)
    ranges = [(at, 100) for at in range(0, SIZE - 100, 10 * PAGE)]
    read(cached, service, *ranges)
    assert sum(size for _, size in service.runs) == len(ranges) * PAGE
    service.requests()
    read(cached, service, *ranges)
    assert service.requests() == (0, 0)


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, BLOCK)), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1, 70_000, 300_000, 2_500_000, LIMIT]),
    st.data(),
)
def test_reads_equal_the_object_whatever_happens_to_the_blocks(
    tmp_path_factory: pytest.TempPathFactory, reads: list[list[tuple[int, int]]], limit: int, data: st.DataObject
) -> None:
    root = str(tmp_path_factory.mktemp("cache"))
    outside = tmp_path_factory.mktemp("outside") / "letter"
    outside.write_bytes(b"dear")
    service = Service(content(1))
    cached = opened(root, service, limit)
    for ranges in reads:
        assert read(cached, service, *((start, min(size, SIZE - start)) for start, size in ranges))
        assert usage(root).size <= limit
        files = sorted(Path(root).rglob("*.blk"))
        for file in files:
            harm = data.draw(st.sampled_from(["none", "flip", "cut", "delete", "link", "swap", "old layout"]))
            block = bytearray(file.read_bytes())
            if harm in ("delete", "link"):
                file.unlink()
                if harm == "link":
                    file.symlink_to(outside)
            elif harm == "swap" and files[0].exists():
                os.replace(files[0], file)
                files[0].write_bytes(block)
            elif harm == "old layout":
                file.write_bytes((b"lanceblk" + bytes(200 + 65_536))[: len(block)])  # the limit counts what was written
            elif harm == "cut":
                file.write_bytes(block[: data.draw(st.integers(0, len(block)))])
            elif harm == "flip" and block:
                block[data.draw(st.integers(0, len(block) - 1))] ^= 1
                file.write_bytes(block)
        if data.draw(st.booleans()):
            cached = opened(root, service, limit)
    assert outside.read_bytes() == b"dear"


@pytest.mark.parametrize("data", [content(9), content(9, SIZE + 1), content(9, SIZE - 1)])
def test_blocks_of_a_replaced_object_are_refused(root: str, data: Bytes) -> None:
    service = Service(content(0))
    read(opened(root, service), service, (0, SIZE))
    replaced = Service(data, "b")
    cached = opened(root, replaced)
    found = cached.read(SIZE, [0], [10])
    assert found is None if len(data) != SIZE else bytes(found[0]) == bytes(data[:10])  # type: ignore[index]
    if len(data) != SIZE:
        pieces = cached.read(len(data), [0, len(data) - 10], [10, 10])
        assert pieces is not None
        assert [bytes(piece) for piece in pieces] == [bytes(data[:10]), bytes(data[-10:])]


def test_blocks_of_two_contents_are_never_mixed(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service)
    read(cached, service, (0, 10))
    service.data, service.tag = content(1), "b"
    assert cached.read(SIZE, [0, SIZE - 10], [10, 10]) is None  # the caller then reads all ranges from the store
    assert read(cached, service, (0, 10), (SIZE - 10, 10))


def test_a_short_response_is_not_stored(root: str) -> None:
    service = Service(content(0, 100))
    assert opened(root, service).read(SIZE, [0], [50]) is None
    assert usage(root).blocks == 0


def test_a_large_read_of_an_unknown_object_asks_for_its_size_first(root: str) -> None:
    service = Service(content(0))
    assert opened(root, service).read(1 << 60, [0], [1 << 50]) is None
    assert service.requests() == (1, 0)


def test_a_store_that_does_not_answer_questions_is_asked_once(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(content(0))
    read(opened(root, service), service, (0, 10))
    asked: list[int] = []

    def refuse() -> tuple[int, str]:
        asked.append(1)
        raise StoreError("405 Method Not Allowed")

    monkeypatch.setattr(service, "ask", refuse)
    cached = opened(root, service)
    assert not read(cached, service, (0, 10))
    assert not read(cached, service, (0, 10))
    assert len(asked) == 1


def test_scans_of_large_objects_are_not_stored_but_small_reads_are(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service, 10 * SIZE - 1)
    read(cached, service, (0, SIZE))
    assert usage(root).blocks == 0
    read(cached, service, (5, 10))
    assert usage(root).size < 2 * PAGE
    read(opened(root, service, 10 * SIZE), service, (0, SIZE))
    assert usage(root).blocks == 4


def test_objects_of_other_buckets_and_keys_have_their_own_blocks(root: str) -> None:
    one, two = Service(content(0)), Service(content(1))
    read(opened(root, one, key="data/x"), one, (0, 10))
    other = opened(root, two, key="data/y")
    assert read(other, two, (0, 10))
    assert two.requests() == (0, 1)
    assert usage(root).objects == 2


def test_mutable_files_are_not_cached(root: str) -> None:
    bucket = BucketCache(DiskCache(root, LIMIT), "s3://bucket", lambda path: path == "data/x")
    assert bucket.object("data/x", "t/data/x", Service(content(0))) is not None
    assert bucket.object("other", "t/other", Service(content(0))) is None


def fail_to_write(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def fail(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", fail)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT])
def test_an_error_of_the_disk_turns_the_cache_off_for_a_minute(
    root: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    service = Service(content(0))
    cached = opened(root, service)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, LOGGER):
        fail_to_write(patch, code)
        assert read(cached, service, (0, SIZE))
        for _ in range(3):
            assert not read(cached, service, (0, 10))
    assert [record.getMessage() for record in caplog.records] == [
        f"the cache {root} is off for a minute: [Errno {code}] {os.strerror(code)}"
    ]
    now += 59
    assert not read(cached, service, (0, 10))
    now += 2
    assert read(cached, service, (0, 10))
    assert usage(root).blocks == 1


def test_unreadable_blocks_are_fetched(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(content(0))
    cached = opened(root, service)
    read(cached, service, (0, 10))

    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folder, "read_block", fail)
    assert read(cached, service, (0, 10))
    assert not read(cached, service, (0, 10))


def test_a_folder_that_cannot_be_made_leaves_the_cache_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    service = Service(content(0))
    with caplog.at_level(logging.WARNING, LOGGER):
        assert not read(opened(str(tmp_path / "file" / "cache"), service), service, (0, 10))
    assert len(caplog.records) == 1


def test_a_deleted_folder_is_made_again_after_a_minute(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    service = Service(content(0))
    cached = opened(root, service)
    shutil.rmtree(root)
    assert read(cached, service, (0, 10))
    assert not read(cached, service, (0, 10))
    now += 61
    assert read(cached, service, (0, 10))
    assert usage(root).blocks == 1
    shutil.rmtree(root)
    Path(root).mkdir()
    (Path(root) / "letter").touch()
    read(cached, service, (SIZE - 1, 1))
    now += 61
    read(cached, service, (SIZE - 1, 1))
    now += 61
    read(cached, service, (0, 10))  # the folder belongs to other files now
    assert os.listdir(root) == ["letter"]


def test_threads_share_a_cache(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service, 3 * BLOCK)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(20):
                start = int(rng.integers(0, SIZE - PAGE))
                assert read_at_once(cached, service, (start, int(rng.integers(1, min(BLOCK, SIZE - start)))))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert usage(root).size <= 3 * BLOCK


def read_at_random(root: str, seed: int, limit: int) -> None:
    service = Service(content(0))
    cached = opened(root, service, limit)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        start = int(rng.integers(0, SIZE - PAGE))
        assert read_at_once(cached, service, (start, int(rng.integers(1, min(BLOCK, SIZE - start)))))


FULL: Final = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from tests.unit.store.disk_cache import test_cache
service = test_cache.Service(test_cache.content(0))
cached = test_cache.opened(sys.argv[1], service)
assert test_cache.read(cached, service, (0, 1000), (test_cache.BLOCK, 1000))
assert test_cache.read(cached, service, (0, 3 * test_cache.BLOCK))
assert not test_cache.read(cached, service, (0, 1000))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of this kind")
def test_a_disk_that_takes_no_more_bytes_turns_the_cache_off_and_keeps_its_blocks(root: str) -> None:
    subprocess.run([sys.executable, "-c", FULL, root], check=True, timeout=120, cwd=Path(__file__).parents[4])
    assert usage(root).blocks == 2
    assert not list(Path(root).rglob("*#*"))
    service = Service(content(0))
    assert read(opened(root, service), service, (0, 1000))
    assert service.requests() == (1, 0)


def test_a_folder_in_the_place_of_a_block_turns_the_cache_off(root: str) -> None:
    service = Service(content(0))
    cached = opened(root, service)
    read(cached, service, (0, 10))
    (file,) = Path(root).rglob("*.blk")
    file.unlink()
    file.mkdir()
    assert read(cached, service, (0, 10))
    assert not read(cached, service, (0, 10))
    assert file.is_dir()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_share_a_cache(root: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    limit = 3 * BLOCK
    if method == "fork":
        read_at_random(root, 9, limit)
    workers = [context.Process(target=read_at_random, args=(root, seed, limit)) for seed in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert usage(root).size <= limit + 2 * BLOCK


def test_uses_are_counted(root: str) -> None:
    def counts() -> dict[str, float]:
        names = ("lance_duck_cache_hits_total", "lance_duck_cache_misses_total", "lance_duck_bytes_read_total")
        found = [each for each in ld.metrics() if each.name in names]
        return {
            each.name: each.value for each in found if "disk" in each.labels.get("cache", each.labels.get("source"))
        }

    service = Service(content(0))
    cached = opened(root, service)
    before = counts()
    read(cached, service, (0, 10))
    read(cached, service, (0, 10), (BLOCK, 10))
    after = counts()
    assert {name: value - before.get(name, 0) for name, value in after.items()} == {
        "lance_duck_cache_hits_total": 1,
        "lance_duck_cache_misses_total": 2,
        "lance_duck_bytes_read_total": PAGE,
    }


def test_options_name_folder_and_size(root: str) -> None:
    assert open_cache({}) is None
    cache = open_cache({"cache": root})
    assert cache is not None
    assert (cache.folder.root, cache.room.limit) == (root, 20_000_000_000)
    assert open_cache({"cache": root}) is cache
    for text, limit in (("5GB", 5_000_000_000), ("1 MiB", 1 << 20), ("12345", 12345)):
        small = open_cache({"cache": root, "cache_size": text})
        assert small is not None
        assert small.room.limit == limit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_size": "5GB"}, "cache_size needs a folder"),
        ({"cache": ""}, "expected a folder, found an empty string"),
        ({"cache": "x", "cache_size": "much"}, "not a number of bytes"),
        ({"cache": "x", "cache_size": "0"}, "not a number of bytes"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        open_cache(options)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    with pytest.raises(InvalidInputError, match="other files"):
        open_cache({"cache": str(tmp_path)})


def test_objects_are_asked_for_again_when_many_are_known(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KNOWN_OBJECTS", 1)
    service = Service(content(0))
    bucket = BucketCache(DiskCache(root, LIMIT), "s3://bucket", lambda _: nullcontext(True))
    one, two = (bucket.object(key, key, service) for key in ("a", "b"))
    assert one is not None
    assert two is not None
    for cached in (one, two, one):
        assert read(cached, service, (0, 10))
    assert service.requests() == (1, 2)
