"""MinHash indexes of pylance: near duplicates through them equal those without an index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileWriter
from lance.indices import IndexConfig

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.scan.duplicates import search
from lance_duck.scan.duplicates.segments import minhash_segments

WORDS = ["red", "green", "Blue", "Über", "fox", "the", "running", "dog", "a", "night"]


def texts(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    made: list[str | None] = []
    for i in range(count):
        words = rng.choice(WORDS, int(rng.integers(0, 14))).tolist()
        if i % 3 == 2 and made[-1]:
            words = made[-1].split(" ")
            words[int(rng.integers(0, len(words)))] = "other"
        made.append(None if i % 17 == 5 else " ".join(words))
    return pa.table({"n": range(seed * 1000, seed * 1000 + count), "t": pa.array(made, pa.string())})


def indexed(path: Path, parameters: dict[str, int], *, stable: bool) -> ld.LanceDataset:
    ds = lance.write_dataset(texts(120, 1), path, max_rows_per_file=50, enable_stable_row_ids=stable)
    ds.update({"n": "n + 500"}, where="n % 9 = 0")
    ds.create_scalar_index("t", IndexConfig("minhashlsh", parameters))
    ds.delete("n % 7 = 3")
    lance.write_dataset(texts(30, 2), path, mode="append")
    return ld.dataset(path)


def without_index(ds: ld.LanceDataset, parameters: dict[str, int], threshold: float) -> pa.Table:
    """Near duplicates by signatures that are computed now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "minhash_segments", lambda *_: [])
        numbers = {"num_hashes": 128, "num_bands": 16, "shingle_size": 3, **parameters}
        made = search.MinHashParameters(*numbers.values())
        patch.setattr(search, "MinHashParameters", lambda: made)
        return ds.near_duplicates("t", threshold)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"num_hashes": 12, "num_bands": 6, "shingle_size": 2}])
def test_an_index_gives_the_pairs_of_a_search_without_it(
    tmp_path: Path, parameters: dict[str, int], stable: bool
) -> None:
    ds = indexed(tmp_path / "t", parameters, stable=stable)
    (segment,) = minhash_segments(ds.handle.snapshot, ds.handle.snapshot.schema.by_path("t"))
    assert segment.version == 0
    for threshold in (0.3, 0.8):
        expected = without_index(ds, parameters, threshold)
        assert expected.num_rows > 5
        assert ds.near_duplicates("t", threshold).equals(expected)
    some = ds.near_duplicates("t", 0.3, filter="n < 1050")
    names = ds.to_table(["n"], with_row_id=True).to_pydict()
    kept = {row for row, n in zip(names["_rowid"], names["n"], strict=True) if n < 1050}
    assert {*some.column("left").to_pylist(), *some.column("right").to_pylist()} <= kept


def with_files(ds: ld.LanceDataset, change: Any) -> Any:
    """Return a copy of the index's entry whose files are changed by a function of their tables."""
    (segment,) = minhash_segments(ds.handle.snapshot, ds.handle.snapshot.schema.by_path("t"))
    old, uuid = Path(ds.uri) / "_indices" / str(segment.uuid), uuid4()
    new = old.parent / str(uuid)
    new.mkdir()
    tables = {
        name: lance.file.LanceFileReader(str(old / name)).read_all().to_table()
        for name in ("signatures.lance", "bands.lance")
    }
    for name, table in change(tables).items():
        with LanceFileWriter(str(new / name), table.schema) as writer:
            writer.write_batch(table)
    return replace(segment, uuid=uuid, files=())


@pytest.mark.parametrize("stable", [False, True])
def test_version_1_of_the_files_has_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    ds = indexed(tmp_path / "t", {}, stable=stable)
    expected = ds.near_duplicates("t", 0.3)
    addresses = dict(zip(*(ds.to_table([name]).column(0).to_pylist() for name in ("_rowid", "_rowaddr")), strict=True))

    def addressed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        rows = tables["signatures.lance"]
        gone = 1 << 20  # a fragment that does not exist
        named = pa.array([addresses.get(row, gone << 32 | i) for i, row in enumerate(rows["_rowid"].to_pylist())])
        tables["signatures.lance"] = rows.drop_columns("_rowid").add_column(0, "_rowaddr", named.cast(pa.uint64()))
        return tables

    later = replace(with_files(ds, addressed), version=1)
    monkeypatch.setattr(search, "minhash_segments", lambda *_: [later])
    assert ds.near_duplicates("t", 0.3).equals(expected)


DAMAGE: dict[str, Any] = {
    "fewer bands": lambda t: {**t, "bands.lance": t["bands.lance"].slice(1)},
    "a band twice": lambda t: {
        **t,
        "bands.lance": pa.concat_tables([t["bands.lance"].slice(0, 1)] * 2 + [t["bands.lance"].slice(2)]),
    },
    "a document that does not exist": lambda t: {
        **t,
        "bands.lance": t["bands.lance"].set_column(
            1, "doc_id", pa.array([4_000_000_000] * len(t["bands.lance"]), pa.uint32())
        ),
    },
    "a band that does not exist": lambda t: {
        **t,
        "bands.lance": t["bands.lance"].set_column(
            0, "band_key", pa.array([255 << 56] * len(t["bands.lance"]), pa.uint64())
        ),
    },
    "a row twice": lambda t: {
        **t,
        "signatures.lance": t["signatures.lance"].set_column(
            0, "_rowid", pa.array([1] * len(t["signatures.lance"]), pa.uint64())
        ),
    },
    "no row ids": lambda t: {**t, "signatures.lance": t["signatures.lance"].rename_columns(["other", "signature"])},
    "no file": lambda t: {"signatures.lance": t["signatures.lance"]},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    ds = indexed(tmp_path / "t", {}, stable=False)
    expected = ds.near_duplicates("t", 0.5)
    segment = with_files(ds, DAMAGE[damage])
    monkeypatch.setattr(search, "minhash_segments", lambda *_: [segment])
    with pytest.warns(IndexWarning, match="is not used"):
        assert ds.near_duplicates("t", 0.5).equals(expected)


def test_an_unknown_version_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = indexed(tmp_path / "t", {}, stable=False)
    expected = ds.near_duplicates("t", 0.5)
    (segment,) = minhash_segments(ds.handle.snapshot, ds.handle.snapshot.schema.by_path("t"))
    monkeypatch.setattr(search, "minhash_segments", lambda *_: [replace(segment, version=2)])
    with pytest.warns(IndexWarning, match="unknown index version"):
        assert ds.near_duplicates("t", 0.5).equals(expected)
