from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from typing import Final

import numpy as np
import pytest

import lance_duck as ld
from lance_duck.store.disk_cache.blocks import HEADER_BYTES, PAGE, ObjectVersion
from lance_duck.store.disk_cache.folder import VERSION, CacheFolder
from lance_duck.store.disk_cache.room import Room

FILE: Final = PAGE + HEADER_BYTES
"""Size of a block with one page."""


def version(number: int) -> ObjectVersion:
    return ObjectVersion(number.to_bytes(32, "big"), PAGE, 0)


def add(folder: CacheFolder, room: Room, number: int) -> None:
    folder.add(version(number), 0, {0: np.zeros(PAGE, np.uint8)}, room.reserve)
    path = os.path.join(folder.root, VERSION, "00", f"{number:062x}-0.blk")
    if os.path.exists(path):
        os.utime(path, (number, number))


def used(folder: CacheFolder) -> int:
    return sum(file.size for file in folder.files())


def numbers(folder: CacheFolder) -> list[int]:
    return sorted(int(file.used) for file in folder.files())


def evicted() -> float:
    return sum(m.value for m in ld.metrics() if m.name == "lance_duck_cache_evicted_bytes_total" and m.labels)


def test_the_oldest_blocks_make_room_and_the_limit_is_kept(folder: CacheFolder) -> None:
    limit, before = 20 * FILE, evicted()
    room = Room(folder, limit)
    for number in range(1, 101):
        add(folder, room, number)
        assert used(folder) <= limit
    assert numbers(folder) == list(range(101 - len(numbers(folder)), 101))
    assert len(numbers(folder)) >= 16
    assert evicted() - before == (100 - len(numbers(folder))) * FILE


def test_a_used_block_stays(folder: CacheFolder) -> None:
    room = Room(folder, 20 * FILE)
    for number in range(1, 41):
        add(folder, room, number)
        folder.find(version(1), 0, {0})
    assert any(file.path.endswith(f"{1:062x}-0.blk") for file in folder.files())


def test_a_block_larger_than_the_limit_is_not_stored(folder: CacheFolder) -> None:
    assert not Room(folder, FILE)._take(FILE)
    assert Room(folder, 2 * FILE)._take(FILE)


def test_blocks_of_former_processes_count(folder: CacheFolder) -> None:
    for number in range(1, 21):
        add(folder, Room(folder, 1 << 30), number)
    room = Room(folder, 10 * FILE)
    add(folder, room, 50)
    assert used(folder) <= 9 * FILE
    assert 50 in numbers(folder)


def test_nothing_is_written_if_the_disk_is_nearly_full(folder: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = namedtuple("disk", "total used free")  # as in shutil
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk(100 * FILE, 95 * FILE, 5 * FILE))
    assert not Room(folder, 1 << 30)._take(FILE)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk(100 * FILE, 94 * FILE, 6 * FILE))
    assert Room(folder, 1 << 30)._take(FILE)


HOLD: Final = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_one_process_evicts_at_a_time(folder: CacheFolder) -> None:
    for number in range(1, 21):
        add(folder, Room(folder, 1 << 30), number)
    room = Room(folder, 10 * FILE)
    command = [sys.executable, "-c", HOLD, os.path.join(folder.root, "evict.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert not room._take(FILE)
        holder.communicate()
    assert used(folder) == 20 * FILE
    assert room._take(FILE)
    assert used(folder) <= 10 * FILE


def test_remains_of_killed_processes_are_evicted_after_an_hour(folder: CacheFolder) -> None:
    add(folder, Room(folder, 1 << 30), 1)
    (file,) = folder.files()
    for name, age in (("#1", 7200), ("#2", 60)):
        shutil.copy(file.path, file.path + name)
        now = os.stat(file.path + name).st_mtime
        os.utime(file.path + name, (now - age, now - age))
    assert Room(folder, 2 * FILE + 9)._take(1) is True
    assert [each.path[-2:] for each in folder.files()] == ["#2"]


def test_a_folder_that_is_gone_is_an_error_of_the_disk(folder: CacheFolder) -> None:
    shutil.rmtree(folder.root)
    with pytest.raises(OSError, match="No such file"):
        Room(folder, 1 << 30)._take(FILE)


def test_room_for_files_that_are_being_written_is_not_given_twice(folder: CacheFolder) -> None:
    room = Room(folder, 3 * FILE // 2)
    with room.reserve(FILE) as first, room.reserve(FILE) as second:
        assert (first, second) == (True, False)
    with room.reserve(FILE) as later:
        assert later
