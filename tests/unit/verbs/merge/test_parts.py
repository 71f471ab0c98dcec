"""A distributed merge: byte keys, rows of a part, and rows changed by two parts."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError, RetryableError
from lance_duck.verbs.merge import match
from lance_duck.verbs.merge import parts as merge_parts
from lance_duck.verbs.merge.commit import commit_merge, joined_parts
from lance_duck.verbs.merge.parts import MergePart, Pairs, table_keys, write_part
from lance_duck.verbs.merge.plan import UPDATE, MergePlan
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.verbs.rows.rows_moved import Offsets, delete_offsets
from lance_duck.write.options import WriteOptions

NOTHING = 2**64 - 1
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-3, 3)),
    "text": (pa.string(), st.text("ab\0", max_size=3)),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "float": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(5, 1), st.sampled_from([Decimal("1.5"), Decimal("-1.5"), Decimal(0)])),
}


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3), st.data())
def test_matching_keys_have_equal_bytes(kinds: list[str], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 6))
    columns = []
    for kind in kinds:
        type_, values = KINDS[kind]
        column = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        columns.append(pa.chunked_array([pa.array([None, *column], type_).slice(1)]))
    codes = KeyIndex(columns, kinds).codes.tolist()
    found = key_bytes(columns, kinds).to_pylist()
    assert [key is None for key in found] == [code < 0 for code in codes]
    numbers = {key: code for key, code in zip(found, codes, strict=True) if key is not None}
    assert len(set(numbers.values())) == len(numbers)
    assert all(numbers[key] == code for key, code in zip(found, codes, strict=True) if key is not None)


@pytest.mark.parametrize("pickled", [False, True])
def test_offsets_of_two_parts_are_united_and_duplicates_reported(pickled: bool) -> None:
    one = Offsets({1: np.array([1, 5], np.uint32), 2: np.array([7], np.uint32)})
    two = Offsets({1: np.array([3], np.uint32)})
    if pickled:
        one, two = pickle.loads(pickle.dumps((one, two)))
    found, repeated = Offsets.united([one, two])
    assert {i: rows.tolist() for i, rows in found.items()} == {1: [1, 3, 5], 2: [7]}
    assert (found.count, repeated) == (4, None)
    assert Offsets.united([one, Offsets.of({1: np.array([5], np.uint32)})])[1] == 1 << 32 | 5


def make(path: Path) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"id": range(6), "s": list("abcdef")}), path, max_rows_per_file=3)


def pairs(*rows: tuple[int | None, str, int | None]) -> Pairs:
    """Source rows with the address of the row that each matches."""
    source = pa.record_batch({"id": pa.array([row[0] for row in rows], pa.int64()), "s": [row[1] for row in rows]})
    addresses = np.array([NOTHING if row[2] is None else row[2] for row in rows], np.uint64)
    keys = key_bytes([source.column("id")], ["id"])
    return Pairs(source, keys, addresses != NOTHING, addresses, np.ones(len(rows), np.bool_))


PLAN = MergePlan(("id",), matched=UPDATE, insert=True)


def write(table: ld.LanceDataset, plan: MergePlan, *batches: Pairs) -> MergePart:
    snapshot = table.handle.snapshot
    with UncommittedFiles(snapshot) as draft:
        return write_part(snapshot, plan, batches, WriteOptions(), draft)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("rows", [[(1, "x", 1), (1, "y", 1)], [(9, "x", None), (9, "y", None)]])
def test_duplicate_keys_are_found_across_batches(tmp_path: Path, rows: list[Any], split: bool) -> None:
    table = make(tmp_path / "t.lance")
    batches = [pairs(row) for row in rows] if split else [pairs(*rows)]
    with pytest.raises(InvalidInputError, match=r"Ambiguous merge.*id = "):
        write(table, PLAN, *batches)
    part = write(table, MergePlan(("id",), matched=UPDATE, insert=True, dedupe="first_seen"), *batches)
    assert part.updated.count + part.inserted == 1


@pytest.mark.parametrize("indexed", [False, True])
def test_only_requested_keys_of_a_table_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    monkeypatch.setattr(match, "ROWS_PER_KEY", 1)
    table = make(tmp_path / "t.lance")
    if indexed:
        table.create_scalar_index("id", "BTREE")
    sought = KeyIndex([pa.chunked_array([pa.array([1, 5, 77], pa.int64())])], ["id"])
    found = [
        (keys.to_pylist(), addresses.tolist(), lost.tolist())
        for keys, addresses, lost in table_keys(table.handle.snapshot, PLAN, [1], sought)
        if len(keys)
    ]
    assert found == [([(5).to_bytes(8, "little")], [1 << 32 | 2], [False])]


def test_a_row_changed_by_two_parts_is_rejected(tmp_path: Path) -> None:
    table = make(tmp_path / "t.lance")
    parts = [write(table, PLAN, pairs((4, "x", 1 << 32 | 1))), write(table, PLAN, pairs((4, "y", 1 << 32 | 1)))]
    with pytest.raises(InvalidInputError, match=r"Ambiguous merge.*id = 4"):
        commit(table, parts)


def test_too_many_keys_conflict_with_any_insert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_parts, "PART_KEYS", 1)
    table = make(tmp_path / "t.lance")
    part = write(table, PLAN, pairs((3, "x", 1 << 32), (10, "y", None), (11, "z", None), (None, "n", None)))
    assert (part.inserted, part.keys) == (3, None)
    ld.write_dataset(pa.table({"id": [77], "s": ["other"]}), tmp_path / "t.lance", mode="append")
    with pytest.raises(RetryableError, match="same key"):
        commit(table, [part])


def commit(table: ld.LanceDataset, parts: list[MergePart]) -> Any:
    snapshot = table.handle.snapshot
    with UncommittedFiles(snapshot) as draft:
        merged = joined_parts(snapshot, PLAN, ["id", "s"], parts, lambda gone: delete_offsets(snapshot, gone, draft))
        return commit_merge(draft, merged)
