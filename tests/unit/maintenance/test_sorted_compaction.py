"""Compactions with `order_by`: sorted rows, and everything that follows them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError, StoreError, UnknownColumnError, UnsupportedError
from lance_duck.maintenance import sorting
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.sorting import SortKeys, sorted_batches
from lance_duck.optimize import Compaction
from lance_duck.scan.options import ColumnOrdering

KEYS = st.one_of(st.none(), st.integers(0, 5))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é"]))
FLOATS = st.one_of(st.none(), st.sampled_from([float("nan"), -0.0, 1.5, float("inf")]))
SCHEMA = pa.schema({"k": pa.int64(), "s": pa.dictionary(pa.int32(), pa.string()), "f": pa.float64(), "n": pa.int64()})
ORDERS = st.lists(
    st.builds(ColumnOrdering, st.sampled_from(["k", "s", "f"]), st.booleans(), st.booleans()), min_size=1, max_size=3
)


def keys_of(orderings: list[ColumnOrdering]) -> SortKeys:
    return SortKeys(orderings, [[each.column_name] for each in orderings])


def shuffled(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"k": rng.integers(0, 40, count), "n": np.arange(count), "s": [f"w{i % 7}" for i in range(count)]})


def ordered(ds: ld.LanceDataset) -> list[tuple[int, int]]:
    rows = ds.to_table(["k", "n"]).to_pylist()
    return sorted((row["k"], row["n"]) for row in rows)


def current(ds: ld.LanceDataset) -> list[tuple[int, int]]:
    return [(row["k"], row["n"]) for row in ds.to_table(["k", "n"]).to_pylist()]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(KEYS, TEXTS, FLOATS), max_size=60),
    orderings=ORDERS,
    batch=st.integers(1, 20),
    most_bytes=st.sampled_from([1, 300, 2000, 1 << 20]),
)
def test_rows_sorted_in_runs_equal_rows_sorted_in_memory(
    rows: list[tuple[Any, ...]], orderings: list[ColumnOrdering], batch: int, most_bytes: int
) -> None:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    table = pa.table([*columns, range(len(rows))], schema=SCHEMA)
    keys = keys_of(orderings)
    parts = table.to_batches(max_chunksize=batch)
    result = pa.Table.from_batches(sorted_batches(parts, keys, most_bytes), SCHEMA)
    assert str(result.to_pylist()) == str(table.take(pa.array(keys.order(table))).to_pylist())


def test_runs_are_read_in_parts_and_their_files_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sorting, "RUN_BATCH_BYTES", 512)
    table, keys = shuffled(5000).select(["k", "n"]), keys_of([ColumnOrdering("k")])
    stream = sorted_batches(table.to_batches(max_chunksize=100), keys, 16 << 10)
    pieces = [next(stream)]
    assert len(list(tmp_path.iterdir())) == 17
    pieces += stream
    assert not list(tmp_path.iterdir())
    assert max(piece.nbytes for piece in pieces) <= 16 << 10
    assert pa.Table.from_batches(pieces).equals(table.take(pa.array(keys.order(table))))


def test_a_stopped_sort_deletes_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = sorted_batches(shuffled(500).to_batches(max_chunksize=50), keys_of([ColumnOrdering("k")]), 2000)
    next(stream)
    stream.close()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="TMPDIR"):
        list(sorted_batches(shuffled(500).to_batches(max_chunksize=50), keys_of([ColumnOrdering("k")]), 2000))


@pytest.mark.parametrize("stable", [False, True])
def test_rows_are_sorted_over_all_fragments_and_keep_ids_and_versions(tmp_path: Path, stable: bool) -> None:
    ds = ld.write_dataset(shuffled(200), tmp_path / "t", max_rows_per_file=50, enable_stable_row_ids=stable)
    ds.delete("n % 9 = 2")
    ds.update({"s": "'new'"}, where="n % 5 = 0")
    hidden = ["n", "s", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"] if stable else ["n", "s"]
    expected, before = ordered(ds), ds.to_table(hidden).sort_by("n")
    metrics = ds.optimize.compact_files(order_by=["k", "n"], target_rows_per_fragment=60)
    assert current(ds) == expected
    assert ds.to_table(hidden).sort_by("n").equals(before)
    assert [ds.get_fragment(i).count_rows() for i in ds.fragment_ids()] == [89, 89]  # type: ignore[union-attr]
    assert metrics.fragments_added == 2
    assert ds.find_problems() == []


def test_sorted_rows_are_only_read(tmp_path: Path) -> None:
    ds = ld.write_dataset(shuffled(200), tmp_path / "t", max_rows_per_file=50)
    ds.optimize.compact_files(order_by=["k"])
    version = ds.version
    assert ds.optimize.compact_files(order_by=["k"]).fragments_removed == 0
    assert ds.version == version
    ds.insert({"k": [99], "n": [200], "s": ["w"]})
    ds.optimize.compact_files(order_by=["k"])
    assert len(ds.fragment_ids()) == 1
    ds.optimize.compact_files(order_by=[ColumnOrdering("k", ascending=False)])
    assert ds.to_table().column("k")[0].as_py() == 99


def test_a_full_single_fragment_is_sorted_too(tmp_path: Path) -> None:
    ds = ld.write_dataset(shuffled(100), tmp_path / "t")
    assert ds.optimize.compact_files(order_by=["k"], target_rows_per_fragment=10).fragments_added == 10
    assert [k for k, _ in current(ds)] == sorted(k for k, _ in current(ds))


@pytest.mark.parametrize("stable", [False, True])
def test_indexes_follow_sorted_rows(tmp_path: Path, stable: bool) -> None:
    rng = np.random.default_rng(3)
    vectors = pa.FixedSizeListArray.from_arrays(rng.random(400 * 4, np.float32), 4)
    rows = shuffled(400).append_column("v", vectors).append_column("l", pa.array([[i % 4, i % 5] for i in range(400)]))
    ds = ld.write_dataset(rows, tmp_path / "t", max_rows_per_file=100, enable_stable_row_ids=stable)
    for column, kind in (("k", "BTREE"), ("n", "ZONEMAP"), ("s", "BLOOMFILTER"), ("l", "LABEL_LIST"), ("s", "NGRAM")):
        ds.create_scalar_index(column, kind, name=kind.lower())
    ds.create_scalar_index("s", "INVERTED", name="text")
    ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    ds.delete("n % 7 = 1")
    ds.optimize.compact_files(order_by=["k", "s"], target_rows_per_fragment=100)
    assert ds.find_problems() == []
    assert all(index.num_rows_indexed == ds.count_rows() for index in ds.describe_indices())
    for filter_ in ("k = 7", "n BETWEEN 30 AND 60", "s = 'w3'", "array_has(l, 3)", "contains(s, 'w5')", "s IS NULL"):
        found = ds.to_table(["n"], filter_)
        assert found.equals(ds.to_table(["n"], filter_, use_scalar_index=False)), filter_
    query = ld.query.MatchQuery("w3", "s")
    assert ds.count_rows(full_text_query=query) == ds.count_rows("s = 'w3'")
    nearest = {"column": "v", "q": [0.5] * 4, "k": 5, "nprobes": 2, "refine_factor": 20}
    assert ds.to_table(["n"], nearest=nearest).equals(ds.to_table(["n"], nearest={**nearest, "use_index": False}))


def test_zone_maps_prune_after_a_sort(tmp_path: Path) -> None:
    ds = ld.write_dataset(shuffled(400), tmp_path / "t", max_rows_per_file=100)
    ds.create_scalar_index("k", "ZONEMAP")
    before = ds.scan(filter="k = 7").explain_plan()
    ds.optimize.compact_files(order_by=["k"], target_rows_per_fragment=100)
    assert "at most 400 rows" in before
    assert "at most 100 rows" in ds.scan(filter="k = 7").explain_plan()


def test_fragments_with_other_indexes_are_sorted_apart(tmp_path: Path) -> None:
    ds = ld.write_dataset(shuffled(40), tmp_path / "t", max_rows_per_file=20)
    ds.create_scalar_index("k", "BTREE")
    ds.insert(shuffled(40, seed=1))
    ds.optimize.compact_files(order_by=["k"])
    assert [ds.get_fragment(i).count_rows() for i in ds.fragment_ids()] == [40, 40]  # type: ignore[union-attr]
    assert ds.describe_indices()[0].num_rows_indexed == 40
    ds.optimize.optimize_indices()
    ds.optimize.compact_files(order_by=["k"])
    keys = [k for k, _ in current(ds)]
    assert keys == sorted(keys)


def test_blobs_nested_columns_and_struct_keys_move_with_their_rows(tmp_path: Path) -> None:
    count = 30
    rng = np.random.default_rng(5)
    order = rng.permutation(count)
    rows = pa.table(
        {
            "p": [{"a": int(i), "b": [str(i)] * (int(i) % 3)} for i in order],
            "b": pa.array([bytes([i]) * 100 for i in order], pa.large_binary()),
        },
        schema=pa.schema(
            [
                pa.field("p", pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})),
                pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
            ]
        ),
    )
    ds = ld.write_dataset(rows, tmp_path / "t", max_rows_per_file=10)
    ds.optimize.compact_files(order_by=["p.a"])
    assert [p["a"] for p in ds.to_table(["p"]).column("p").to_pylist()] == list(range(count))
    assert [blob.read()[0] for blob in ds.take_blobs("b", indices=[0, 7, 29])] == [0, 7, 29]


def test_another_writer_makes_the_sort_run_again(tmp_path: Path) -> None:
    ds = ld.write_dataset(shuffled(60), tmp_path / "t", max_rows_per_file=20)
    done = []

    def delete(_: int, __: int) -> None:
        if not done:
            done.append(ld.dataset(ds.uri).delete("n < 10"))

    ds.optimize.compact_files(order_by=["k", "n"], progress=delete)
    assert current(ds) == ordered(ds)
    assert ds.count_rows() == 50


def test_orders_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"k": [2, 1], "l": [[1], [2]], "j": pa.array(["1", "2"], pa.json_())})
    ds = ld.write_dataset(rows, tmp_path / "t")
    with pytest.raises(UnsupportedError, match="cannot express sorted rows"):
        ds.optimize.compact_files(order_by=["k"], defer_index_remap=True)
    for column in ("l", "j"):
        with pytest.raises(UnsupportedError, match=f"cannot be sorted by this column: found {column}"):
            ds.optimize.compact_files(order_by=[column])
    with pytest.raises(UnknownColumnError, match="nope"):
        ds.optimize.compact_files(order_by=["nope"])
    for wrong in ("k", [7]):
        with pytest.raises(InvalidInputError, match="order_by"):
            ds.optimize.compact_files(order_by=wrong)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="several processes cannot sort rows"):
        Compaction.plan(ds, {"order_by": ["k"]})
    assert ds.version == 1
    assert CompactionOptions(order_by=("k",)).orderings == (ColumnOrdering("k"),)
