from __future__ import annotations

from pathlib import Path

import pytest
from numba.core.caching import IndexDataCacheFile

from lance_duck.encoding.kernels.jit import CacheFile


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
