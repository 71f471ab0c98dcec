from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store.disk_cache import Usage, clear, usage
from lance_duck.store.disk_cache.blocks import HEADER_BYTES, PAGE, PAGES, ObjectVersion
from lance_duck.store.disk_cache.claim import MARKER
from lance_duck.store.disk_cache.folder import VERSION, CacheFolder

FILE: Final = PAGE + HEADER_BYTES


def fill(folder: CacheFolder) -> None:
    for number, name in enumerate((b"a", b"b")):
        version = ObjectVersion(name * 32, 1 << 30, 0)
        for block in range(number + 1):
            folder.add(version, block, {block * PAGES: np.zeros(PAGE, np.uint8)}, lambda _: nullcontext(True))
    for at, file in enumerate(sorted(folder.files())):
        os.utime(file.path, (at + 100, at + 100))


def test_usage_counts_blocks_objects_and_bytes(folder: CacheFolder) -> None:
    assert usage(folder.root) == Usage(0, 0, 0, None)
    fill(folder)
    assert usage(folder.root) == Usage(3, 2, 3 * FILE, 100.0)


def test_clear_deletes_blocks_and_keeps_the_folder_a_cache(folder: CacheFolder) -> None:
    fill(folder)
    (Path(folder.root) / VERSION / "notes.txt").write_text("of somebody")
    assert clear(folder.root).blocks == 3
    assert usage(folder.root).blocks == 0
    assert (Path(folder.root) / MARKER).exists()
    assert (Path(folder.root) / VERSION / "notes.txt").exists()


def test_a_folder_that_is_not_a_cache_is_not_touched(tmp_path: Path) -> None:
    block = tmp_path / "v1" / "ab" / "cd-0.blk"
    block.parent.mkdir(parents=True)
    block.touch()
    with pytest.raises(InvalidInputError, match="not a cache of lance-duck"):
        clear(str(tmp_path))
    assert block.exists()
    with pytest.raises(NotFoundError):
        usage(str(tmp_path / "missing"))
