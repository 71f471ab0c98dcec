"""Optimizing indexes: the resulting segments, the data read, and unchanged segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexNotFoundError, IndexWarning, InvalidInputError
from lance_duck.indices import IndexConfig
from lance_duck.verbs.indexes import optimize, staged_segments
from lance_duck.verbs.indexes.segment_orders import SegmentOrder
from lance_duck.verbs.public.lance_operation import Index

OPTIONS = {"fsync": "false"}
KINDS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]


def write(place: str, first: int, count: int, **settings: Any) -> ld.LanceDataset:
    table = pa.table({"id": pa.array(range(first, first + count), pa.int64()), "n": [i % 3 for i in range(count)]})
    return ld.write_dataset(table, place, storage_options=OPTIONS, max_rows_per_file=10, **settings)


either_id = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])


@pytest.fixture
def stable() -> bool:
    """Return whether the table has stable row ids; tests may override it."""
    return False


@pytest.fixture
def ds(place: str, stable: bool) -> ld.LanceDataset:
    """Twenty rows in two fragments, with an index."""
    ds = write(place, 0, 20, enable_stable_row_ids=stable)
    ds.create_scalar_index("id", "BTREE", "i")
    return ds


def append(ds: ld.LanceDataset, first: int, count: int = 10) -> None:
    write(ds.uri, first, count, mode="append")
    ds.checkout_latest()


def covered(ds: ld.LanceDataset, name: str = "i") -> list[list[int]]:
    return [sorted(s["fragment_ids"]) for s in ds.list_indices() if s["name"] == name]


def files(ds: ld.LanceDataset) -> set[str]:
    return {path.parent.name for path in Path(ds.uri).rglob("_indices/*/*")}


def check(ds: ld.LanceDataset) -> None:
    for bound in (3, 14, 1007):
        expected = [i for i in ds.to_table()["id"].to_pylist() if i <= bound]
        assert sorted(ds.to_table(filter=f"id <= {bound}")["id"].to_pylist()) == sorted(expected)
    ds.validate()


def break_segments(ds: ld.LanceDataset) -> None:
    for path in Path(ds.uri).rglob("_indices/*/*"):
        path.write_bytes(b"broken")


# What there is afterwards.


def test_optimize_without_new_rows_creates_no_version(ds: ld.LanceDataset) -> None:
    ds.optimize.optimize_indices()
    ds.optimize.optimize_indices(num_indices_to_merge=5)
    assert ds.version == ds.latest_version == 2


@either_id
def test_small_segments_are_merged_with_new_rows(ds: ld.LanceDataset) -> None:
    append(ds, 20)
    assert covered(ds) == [[0, 1]]
    ds.optimize.optimize_indices()
    assert (covered(ds), ds.version) == ([[0, 1, 2]], 4)
    check(ds)


def test_large_segments_are_not_merged(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "SMALL_SEGMENT", 0)
    append(ds, 20, 2)
    ds.optimize.optimize_indices()
    assert covered(ds) == [[0, 1], [2]]
    append(ds, 30, 2)
    ds.optimize.optimize_indices()
    assert covered(ds) == [[0, 1], [2, 3]]
    append(ds, 40, 4)
    ds.optimize.optimize_indices()
    assert covered(ds) == [[0, 1, 2, 3, 4]]
    check(ds)


@pytest.mark.parametrize(
    ("merge", "expected"),
    [(0, [[0, 1], [2], [3], [4]]), (1, [[0, 1], [2], [3, 4]]), (2, [[0, 1], [2, 3, 4]]), (9, [[0, 1, 2, 3, 4]])],
)
def test_the_requested_number_of_newest_segments_is_merged(
    ds: ld.LanceDataset, merge: int, expected: list[list[int]]
) -> None:
    for first in (20, 30):
        append(ds, first)
        ds.optimize.optimize_indices(num_indices_to_merge=0)
    append(ds, 40)
    ds.optimize.optimize_indices(num_indices_to_merge=merge)
    assert covered(ds) == expected
    check(ds)


def test_segments_can_be_merged_without_new_rows(ds: ld.LanceDataset) -> None:
    append(ds, 20)
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    version = ds.version
    ds.optimize.optimize_indices()
    ds.optimize.optimize_indices(num_indices_to_merge=1)
    assert ds.version == version
    ds.optimize.optimize_indices(num_indices_to_merge=2)
    assert (covered(ds), ds.version) == ([[0, 1, 2]], version + 1)
    check(ds)


def test_all_indexes_are_optimized_in_one_commit(ds: ld.LanceDataset) -> None:
    for kind in KINDS:
        ds.create_scalar_index("n", kind, kind)
    append(ds, 20)
    version = ds.version
    told: list[tuple[int, int]] = []
    ds.optimize.optimize_indices(
        index_names=["i", "BITMAP"],
        progress=lambda done, total: told.append((done, total)),
        commit_message="why",
        transaction_properties={"a": "b"},
    )
    assert (told[0], told[-1]) == ((0, 20), (20, 20))
    assert told == sorted(told)
    assert ds.version == version + 1
    assert ds.read_transaction(ds.version).transaction_properties == {"__lance_commit_message": "why", "a": "b"}
    assert [covered(ds, name)[0][-1] for name in ("i", *KINDS)] == [2, 1, 2, 1, 1]
    ds.optimize.optimize_indices()
    assert ds.version == version + 2
    assert all(covered(ds, name) == [[0, 1, 2]] for name in ("i", *KINDS))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("merge", [0, None])
@either_id
def test_rows_that_changed_are_indexed_again(ds: ld.LanceDataset, kind: str, merge: int | None) -> None:
    ds.create_scalar_index("id", kind, "i")
    ds.update({"id": "id + 1000"}, "id < 5")
    ds.optimize.optimize_indices(num_indices_to_merge=merge)
    assert ds.index_statistics("i")["num_unindexed_rows"] == 0
    check(ds)


@pytest.mark.parametrize("kind", KINDS)
@either_id
def test_rewritten_columns_leave_no_old_values_in_segments(ds: ld.LanceDataset, kind: str) -> None:
    ds.create_scalar_index("id", kind, "i")
    fragment = ds.get_fragment(0)
    assert fragment is not None
    table = fragment.to_table(with_row_address=True)
    new = pa.table({"_rowaddr": table["_rowaddr"], "id": pa.array(range(1000, 1010))})
    updated, fields = fragment.update_columns(new, "_rowaddr")
    operation = ld.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    ld.LanceDataset.commit(ds.uri, operation, ds.version, storage_options=OPTIONS)
    ds.checkout_latest()
    assert covered(ds) == [[1]]
    check(ds)
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    assert covered(ds) == [[0, 1]]
    check(ds)


def test_segments_of_missing_fragments_are_replaced(ds: ld.LanceDataset) -> None:
    ds.delete("true")
    ds.optimize.optimize_indices()
    append(ds, 20)
    ds.optimize.optimize_indices()
    assert [ids[-1] for ids in covered(ds)] == [2]
    assert ds.index_statistics("i")["num_indexed_rows"] == 10
    check(ds)


def test_an_untrained_index_is_built_with_its_parameters(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", IndexConfig("zonemap", {"rows_per_zone": 5}), "z", train=False)
    ds.optimize.optimize_indices()
    assert ds.index_statistics("z")["segments"] == [{"num_zones": 4, "rows_per_zone": 5}]


def test_optimize_on_an_old_handle_updates_the_newest_version(ds: ld.LanceDataset) -> None:
    append(ds, 20)
    old = ld.dataset(ds.uri, ds.version, storage_options=OPTIONS)
    write(ds.uri, 30, 10, mode="append")
    old.optimize.optimize_indices()
    assert old.version == old.latest_version
    assert covered(old) == [[0, 1, 2]]
    check(old)


# Rebuilt indexes.


@pytest.mark.parametrize("parameters", [{"rows_per_zone": 5}, {}])
def test_retraining_keeps_the_index_parameters(ds: ld.LanceDataset, parameters: dict[str, int]) -> None:
    ds.create_scalar_index("id", IndexConfig("zonemap", parameters), "z")
    before = ds.index_statistics("z")["segments"]
    append(ds, 20)
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    ds.optimize.optimize_indices(retrain=True, index_names=["z"])
    after = ds.index_statistics("z")["segments"]
    assert (covered(ds, "z"), covered(ds)) == ([[0, 1, 2]], [[0, 1], [2]])
    assert after[0]["rows_per_zone"] == before[0]["rows_per_zone"]


def test_broken_segments_are_skipped_until_they_are_retrained(ds: ld.LanceDataset) -> None:
    append(ds, 20)
    break_segments(ds)
    version = ds.version
    with pytest.warns(IndexWarning, match="'i' was not changed") as told:
        ds.optimize.optimize_indices()
    assert {each.filename for each in told} == {__file__}
    assert ds.version == version
    assert "error" in ds.index_statistics("i")["segments"][0]
    ds.optimize.optimize_indices(retrain=True)
    assert covered(ds) == [[0, 1, 2]]
    check(ds)


def test_a_new_segment_is_built_without_reading_a_broken_one(ds: ld.LanceDataset) -> None:
    append(ds, 20)
    break_segments(ds)
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    assert covered(ds) == [[0, 1], [2]]


def test_indexes_of_unknown_kinds_are_unchanged(ds: ld.LanceDataset) -> None:
    entry = Index("0" * 31 + "7", "odd", [1], ds.version, {0, 1}, 0, index_details=("/somebody.OddIndexDetails", b"x"))
    ld.LanceDataset.commit(ds.uri, ld.LanceOperation.CreateIndex([entry], []), ds.version, storage_options=OPTIONS)
    append(ds, 20)
    for settings in ({}, {"retrain": True}):
        with pytest.warns(IndexWarning, match="'odd' was not changed"):
            ds.optimize.optimize_indices(**settings)  # type: ignore[arg-type]
        assert covered(ds, "odd") == [[0, 1]]
        assert covered(ds) == [[0, 1, 2]]
    (found,) = (i for i in ds.describe_indices() if i.name == "odd")
    assert (found.index_type, found.type_url, found.num_rows_indexed) == ("Odd", "/somebody.OddIndexDetails", 20)
    assert ds.index_statistics("odd")["segments"] == [{}]
    ds.drop_index("odd")
    assert covered(ds, "odd") == []


def test_invalid_arguments_are_rejected(ds: ld.LanceDataset) -> None:
    with pytest.raises(IndexNotFoundError, match="'nope'"):
        ds.optimize.optimize_indices(index_names=["nope"])
    for merge in (-1, True, "1", 1.5):
        with pytest.raises(InvalidInputError, match="num_indices_to_merge"):
            ds.optimize.optimize_indices(num_indices_to_merge=merge)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ds.optimize.optimize_indices(bogus=1)  # type: ignore[call-arg]


# Races.


def test_built_segments_are_reused_after_a_conflict_if_still_valid(
    ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds.create_scalar_index("n", "BITMAP", "k")
    append(ds, 20)
    built, lost = _lose_once(ds, monkeypatch, lambda other: other.optimize.optimize_indices(index_names=["i"]))
    ds.optimize.optimize_indices()
    assert lost == [1]
    assert sorted(segment.name for segment in built) == ["i", "i", "k"]
    assert covered(ds) == covered(ds, "k") == [[0, 1, 2]]
    check(ds)


@either_id
def test_segments_merged_by_another_writer_are_replanned(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    append(ds, 20)
    built, lost = _lose_once(ds, monkeypatch, lambda other: other.optimize.optimize_indices())
    ds.optimize.optimize_indices()
    assert lost == [1]
    assert covered(ds) == [[0, 1, 2]]
    named = {s["uuid"] for v in ds.versions() for s in ds.checkout_version(v["version"]).list_indices()}
    assert files(ds) == named
    assert len(built) == 2
    check(ds)


def _lose_once(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch, other: Any) -> tuple[list[Any], list[int]]:
    """Let another writer win once; return all built segments and a marker."""
    built: list[Any] = []
    lost: list[int] = []
    write, commit = SegmentOrder.write, staged_segments.commit

    def writing(*arguments: Any) -> Any:
        built.append(write(*arguments))
        return built[-1]

    def committing(*arguments: Any, **more: Any) -> Any:
        if not lost:
            lost.append(1)
            other(ld.dataset(ds.uri, storage_options=OPTIONS))
        return commit(*arguments, **more)

    monkeypatch.setattr(SegmentOrder, "write", writing)
    monkeypatch.setattr(staged_segments, "commit", committing)
    return built, lost
