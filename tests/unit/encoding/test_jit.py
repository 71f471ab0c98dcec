from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from lance_duck.encoding.kernels.jit import CacheFile, kernel, stamp_of_sources


def cache(folder: Path, stamp: str = "source") -> CacheFile:
    return CacheFile(str(folder), "kernel", stamp)


def test_kernels_that_two_processes_keep_at_once_are_not_mixed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(tmp_path).save("int32", "code of int32")
    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_load_index", lambda _: {})  # it was read before the first one was written
        cache(tmp_path).save("int64", "code of int64")

    assert cache(tmp_path).load("int64") == "code of int64"
    assert cache(tmp_path).load("int32") in (None, "code of int32")


def test_a_kernel_of_another_source_is_not_taken(tmp_path: Path) -> None:
    cache(tmp_path, "old").save("int32", "old code")
    assert cache(tmp_path, "new").load("int32") is None

    cache(tmp_path, "new").save("int32", "new code")
    assert cache(tmp_path, "new").load("int32") == "new code"


def stamp(folder: Path) -> str:
    stamp_of_sources.cache_clear()
    return stamp_of_sources(folder)


def test_a_byte_of_any_source_changes_the_stamp_of_all_kernels(tmp_path: Path) -> None:
    for name in ("calls.py", "called.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    before = stamp(tmp_path)
    assert stamp(tmp_path) == before

    (tmp_path / "called.py").write_text("x = 2\n", encoding="utf-8")
    changed = stamp(tmp_path)
    (tmp_path / "called.py").rename(tmp_path / "other.py")
    assert len({before, changed, stamp(tmp_path)}) == 3


def test_kernels_are_kept_under_the_stamp_of_all_sources() -> None:
    compiled: Any = kernel(lambda x: x)
    assert compiled._cache._cache_file._source_stamp[1] == stamp_of_sources()


def test_a_kernel_that_calls_another_counts_no_references() -> None:
    inner = kernel(lambda a, i: a[i] + 1)
    outer: Any = kernel(lambda a: inner(a, 0) + inner(a, 1))
    assert outer(np.arange(2)) == 3
    assert not any("NRT" in code for code in outer.inspect_llvm().values())
