from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from lance_duck.store.disk_cache.blocks import BLOCK, PAGE, ObjectVersion
from lance_duck.store.disk_cache.folder import VERSION, CacheFolder, is_block
from lance_duck.store.request import Bytes

OBJECT: Final = ObjectVersion(bytes(range(32)), BLOCK + 100, 5)
OTHER: Final = ObjectVersion(bytes(32), BLOCK, 5)


def page(seed: int, size: int = PAGE) -> Bytes:
    return np.full(size, seed, np.uint8)


def add(folder: CacheFolder, *pages: int, version: ObjectVersion = OBJECT) -> None:
    folder.add(version, 0, {each: page(each) for each in pages}, lambda _: nullcontext(True))


def test_pages_are_added_to_a_block(folder: CacheFolder) -> None:
    assert not folder.has_any(OBJECT.name, [0, 1])
    assert folder.find(OBJECT, 0, {0}) == {}
    add(folder, 2)
    add(folder, 0, 5)
    assert folder.has_any(OBJECT.name, [0, 1])
    assert {number: int(data[0]) for number, data in folder.find(OBJECT, 0, {0, 1, 2, 5}).items()} == {0: 0, 2: 2, 5: 5}
    assert len(list(folder.files())) == 1


def test_nothing_is_written_without_room(folder: CacheFolder) -> None:
    asked: list[int] = []
    folder.add(OBJECT, 0, {0: page(0)}, lambda size: nullcontext(bool(asked.append(size))))  # type: ignore[func-returns-value]
    assert PAGE < asked[0] < PAGE + 1000
    assert list(folder.files()) == []


def test_a_damaged_block_is_deleted(folder: CacheFolder) -> None:
    add(folder, 0)
    (file,) = folder.files()
    Path(file.path).write_bytes(b"x")
    assert folder.find(OBJECT, 0, {0}) == {}
    assert list(folder.files()) == []
    assert not folder.has_any(OBJECT.name, [0, 1])


def test_a_block_of_a_replaced_object_is_deleted(folder: CacheFolder) -> None:
    add(folder, 0)
    assert folder.find(ObjectVersion(OBJECT.name, OBJECT.size, 6), 0, {0}) == {}
    assert list(folder.files()) == []


def test_a_use_updates_the_time_of_a_block_once_an_hour(folder: CacheFolder) -> None:
    add(folder, 0)
    (file,) = folder.files()
    for age, is_updated in ((1800, False), (7200, True)):
        then = file.used - age
        os.utime(file.path, (then, then))
        folder.find(OBJECT, 0, {1})
        assert next(folder.files()).used == pytest.approx(then)
        folder.find(OBJECT, 0, {0})
        assert (next(folder.files()).used > then + 1) is is_updated


def test_a_failed_write_leaves_nothing(folder: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        add(folder, 0)
    assert list(folder.files()) == []


def test_short_writes_are_continued(folder: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:1000]))
    add(folder, 0)
    assert bytes(folder.find(OBJECT, 0, {0})[0]) == bytes(PAGE)


def test_a_folder_that_is_gone_is_not_created_again(folder: CacheFolder) -> None:
    shutil.rmtree(folder.root)
    with pytest.raises(OSError, match="no longer a cache"):
        add(folder, 0)
    assert not os.path.exists(folder.root)
    assert list(folder.files()) == []


KILLED: Final = """
import os, signal, sys
from contextlib import nullcontext
import numpy as np
from lance_duck.store.disk_cache.blocks import ObjectVersion
from lance_duck.store.disk_cache.folder import CacheFolder

write = os.write
def write_a_part(descriptor, data):
    if len(data) < 1000:
        return write(descriptor, data)
    write(descriptor, data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
os.write = write_a_part
version = ObjectVersion(bytes(range(32)), (1 << 20) + 100, 5)
CacheFolder(sys.argv[1]).add(version, 0, {1: np.ones(16384, np.uint8)}, lambda _: nullcontext(True))
"""


def test_a_kill_during_a_write_keeps_the_block_as_it_was(folder: CacheFolder) -> None:
    add(folder, 0)
    killed = subprocess.run([sys.executable, "-c", KILLED, folder.root], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert [is_block(file.path) for file in sorted(folder.files())] == [True, False]
    assert folder.find(OBJECT, 0, {0, 1}).keys() == {0}
    add(folder, 1)
    assert folder.find(OBJECT, 0, {0, 1}).keys() == {0, 1}


def test_files_of_all_versions_are_listed_but_no_others(folder: CacheFolder) -> None:
    add(folder, 0)
    add(folder, 1, version=OTHER)
    newer = Path(folder.root) / "v9" / "ab"
    newer.mkdir(parents=True)
    (newer / "cd-0.blk").write_bytes(b"12345")
    (Path(folder.root) / VERSION / "notes").write_text("x")
    assert sorted(file.size for file in folder.files())[0] == 5
    assert len(list(folder.files())) == 3
