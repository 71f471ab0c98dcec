"""Reads of an object store, ahead and page by page, give what reads of a local disk do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import obstore
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.file import leaf
from lance_duck.scan.read import pace
from lance_duck.store import object as object_store

ROWS = 3000
FRAGMENTS = 3


def rows() -> pa.Table:
    rng = np.random.default_rng(3)
    texts = [None if i % 11 == 0 else f"text {i * 7919}" * (i % 5) for i in range(ROWS)]
    return pa.table(
        {
            "id": np.arange(ROWS),
            "n": rng.integers(0, 20, ROWS),
            "text": pa.array(texts),
            "kind": pa.array([f"kind {i % 3}" for i in range(ROWS)]),
            "items": pa.array([None if i % 13 == 0 else list(range(i % 4)) for i in range(ROWS)]),
            "v": pa.FixedSizeListArray.from_arrays(rng.random(ROWS * 64, np.float32), 64),
            "wide": pa.array([rng.bytes(200) for _ in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same rows on a local disk and in an object store."""
    uris = [str(tmp_path_factory.mktemp("scans") / "t.lance"), f"memory:///{uuid4()}.lance"]
    for uri in uris:
        table = ld.write_dataset(rows(), uri, max_rows_per_file=ROWS // FRAGMENTS)
        table.delete("id % 17 = 3")
    return uris


@contextmanager
def limits(morsel_rows: int, morsel_bytes: int, gap: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "REMOTE_MORSEL_ROWS", morsel_rows)
        patch.setattr(pace, "REMOTE_MORSEL_BYTES", morsel_bytes)
        patch.setattr(leaf, "COALESCED_GAP", gap)
        yield


NAMES = st.lists(st.sampled_from(["id", "n", "text", "kind", "items", "v", "wide"]), min_size=1, unique=True)
FILTERS = st.sampled_from([None, "n = 3", "n < 19", "id > 2500", "kind = 'kind 1' AND n < 5", "text IS NULL", "id < 0"])


@settings(max_examples=20)
@given(NAMES, FILTERS, st.data())
def test_remote_scans_return_the_same_rows_in_the_same_order(
    places: list[str], names: list[str], condition: str | None, data: st.DataObject
) -> None:
    sizes = st.sampled_from([1, 100, 10_000, 1 << 24])
    with limits(data.draw(st.sampled_from([150, 400, 1 << 20])), data.draw(sizes), data.draw(sizes)):
        limit = data.draw(st.sampled_from([None, 10]))
        local, remote = (ld.dataset(uri).to_table(columns=names, filter=condition, limit=limit) for uri in places)
        assert remote.equals(local)
        assert ld.dataset(places[1]).count_rows(condition) == ld.dataset(places[0]).count_rows(condition)


@settings(max_examples=20)
@given(NAMES, st.lists(st.integers(0, 2700), max_size=20), st.sampled_from([1, 1 << 24]))
def test_remote_takes_return_the_same_rows(places: list[str], names: list[str], wanted: list[int], gap: int) -> None:
    with limits(400, 10_000, gap):
        local, remote = (ld.dataset(uri).take(wanted, columns=names) for uri in places)
        assert remote.equals(local)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    reads: list[Any] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(obstore, name)

        def get_ranges(self, client: Any, key: str, **ranges: Any) -> Any:
            reads.append(key)
            return obstore.get_ranges(client, key, **ranges)

    monkeypatch.setattr(object_store, "obstore", Counting())
    return reads


def test_a_remote_scan_reads_each_file_in_two_rounds(places: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch)
    ld.dataset(places[1]).to_table(columns=["wide"])
    assert sorted(reads) == sorted([*set(reads)] * 2)
    assert len(set(reads)) == FRAGMENTS


def test_a_small_remote_file_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uri = f"memory:///{uuid4()}.lance"
    ld.write_dataset(pa.table({"id": range(100)}), uri)
    reads = counted(monkeypatch)
    assert ld.dataset(uri).to_table()["id"].to_pylist() == [*range(100)]
    assert len(reads) == 1
