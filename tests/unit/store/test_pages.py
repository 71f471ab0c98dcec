"""Nonresident rows are prefetched, and reads return the same rows either way."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.store import mapped, pages


@pytest.mark.skipif(sys.platform != "linux", reason="pages are dropped by a call of Linux")
def test_pages_evicted_by_the_system_are_not_resident(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(64 * mmap.PAGESIZE))
    with path.open("rb") as file:
        data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        places = np.array([0, 5 * mmap.PAGESIZE + 7, 64 * mmap.PAGESIZE - 1])
        assert pages.are_resident(data, places)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert not pages.are_resident(data, places)


def test_pages_count_as_resident_if_the_system_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_mincore", lambda: None)
    assert pages.are_resident(np.zeros(1, np.uint8), np.array([0]))
    monkeypatch.setattr(pages, "_mincore", lambda: lambda *_: -1)
    assert pages.are_resident(np.zeros(1, np.uint8), np.array([0]))


def table(count: int) -> pa.Table:
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(rng.random(count * 128, np.float32), 128)
    texts = [None if i % 5 == 0 else f"text {i * 7919}" for i in range(count)]
    return pa.table({"id": rng.permutation(count), "text": texts, "v": vectors})


def test_nonresident_rows_are_prefetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(20_000)
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows, uri)
    asked: list[tuple[int, int]] = []

    wanted = sorted(np.random.default_rng(2).choice(20_000, 300, replace=False).tolist())
    monkeypatch.setattr(pages, "are_resident", lambda *_: True)
    warm = ld.dataset(uri).take(wanted)
    monkeypatch.setattr(pages, "are_resident", lambda *_: False)
    calls: list[int] = []
    advise = pages.FilePages.advise

    def noted(mapped_pages: pages.FilePages, advice: int, start: int, size: int) -> None:
        asked.append((start, size))
        advise(mapped_pages, advice, start, size)

    read_ahead = mapped.MappedFile.read_ahead

    def counted(file: Any, offset: int, chosen: Any, spans: Any) -> None:
        calls.append(len(chosen))
        with monkeypatch.context() as patch:
            patch.setattr(pages.FilePages, "advise", noted)
            read_ahead(file, offset, chosen, spans)

    monkeypatch.setattr(mapped.MappedFile, "read_ahead", counted)
    cold = ld.dataset(uri).take(wanted)
    assert cold.equals(warm)
    assert cold.equals(rows.take(wanted).cast(cold.schema))
    assert len(calls) >= 2
    assert len(asked) > 100
    starts = np.array([start for start, _ in asked])
    assert (starts % mmap.PAGESIZE == 0).all()
    assert all(length > 0 for _, length in asked)
