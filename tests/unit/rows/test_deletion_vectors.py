from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_duck.errors import CorruptError, LanceDuckError
from lance_duck.rows import DeletionVector, read_deletion_vector

UINT32 = pa.uint32()


def arrow_file(offsets: list[int], kind: pa.DataType = UINT32, compression: str | None = "zstd") -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field("row_id", kind, nullable=False)])
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as file:
        file.write(pa.record_batch([pa.array(offsets, kind)], schema=schema))
    return sink.getvalue()


@given(st.sets(st.integers(0, 99)), st.data())
def test_a_vector_behaves_like_the_set_of_its_offsets(gone: set[int], data: st.DataObject) -> None:
    vector = DeletionVector(np.array(sorted(gone), np.uint32))
    start = data.draw(st.integers(0, 100))
    stop = data.draw(st.integers(start, 100))
    assert vector.count == len(gone)
    assert vector.count_in(start, stop) == sum(start <= g < stop for g in gone)
    assert vector.mask(start, stop).tolist() == [i not in gone for i in range(start, stop)]
    assert vector.live_offsets(start, stop).tolist() == [i for i in range(start, stop) if i not in gone]
    asked = data.draw(st.lists(st.integers(0, 120), max_size=20))
    assert vector.contains(np.array(asked, np.int64)).tolist() == [i in gone for i in asked]
    live = [i for i in range(100) if i not in gone]
    places = data.draw(st.lists(st.integers(0, len(live) - 1), max_size=20)) if live else []
    assert vector.nth_live(np.array(places, np.int64)).tolist() == [live[p] for p in places]


@pytest.mark.parametrize("kind", [pa.uint32(), pa.int32()])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_arrow_files_list_offsets_in_any_order(kind: pa.DataType, compression: str | None) -> None:
    vector = read_deletion_vector(arrow_file([9, 2, 5], kind, compression), "arrow", "here", 10, 3)
    assert vector.deleted.tolist() == [2, 5, 9]


def test_roaring_files_list_offsets() -> None:
    offsets = [0, 7, 70000, 70001]
    assert read_deletion_vector(BitMap(offsets).serialize(), "bin", "here", 80000, 4).deleted.tolist() == offsets


@pytest.mark.parametrize(("suffix", "data"), [("arrow", arrow_file([1, 10])), ("bin", BitMap([1, 10]).serialize())])
def test_out_of_range_offsets_and_wrong_counts_are_corrupt(suffix: str, data: bytes) -> None:
    with pytest.raises(CorruptError, match="out of range"):
        read_deletion_vector(data, suffix, "here", 10)
    with pytest.raises(CorruptError, match="number of deleted rows"):
        read_deletion_vector(data, suffix, "here", 11, 3)


def test_a_bitmap_of_billions_is_rejected_without_expansion() -> None:
    everything = BitMap()
    everything.add_range(0, 2**32)
    everything.run_optimize()
    with pytest.raises(CorruptError, match="4294967296 values"):
        read_deletion_vector(everything.serialize(), "bin", "here", 1000)


def test_unexpected_columns_are_corrupt() -> None:
    with pytest.raises(CorruptError, match="columns"):
        read_deletion_vector(arrow_file([1], pa.int64()), "arrow", "here", 10)


@given(st.data())
def test_cut_and_flipped_bytes_raise_errors_of_this_package_only(data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from(["arrow", "bin"]))
    raw = bytearray(arrow_file([1, 2, 3]) if suffix == "arrow" else BitMap([1, 2, 3]).serialize())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    kept = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with suppress(LanceDuckError):
        deleted = read_deletion_vector(kept, suffix, "here", 10).deleted
        assert deleted.tolist() == sorted(set(deleted.tolist()) & set(range(10)))


@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)))
def test_vectors_combine_like_sets(one: set[int], other: set[int]) -> None:
    a, b = (DeletionVector.of(np.array(list(s), np.int64)) for s in (one, other))
    assert a.union(b).deleted.tolist() == sorted(one | other)
    assert a.difference(b).deleted.tolist() == sorted(one - other)
    assert a.intersects(b) == bool(one & other)


@pytest.mark.parametrize(("count", "suffix"), [(1, "arrow"), (4999, "arrow"), (5000, "bin")])
def test_deletion_vectors_round_trip_in_the_format_for_their_size(count: int, suffix: str) -> None:
    vector = DeletionVector.of(np.arange(0, 3 * count, 3))
    assert vector.suffix == suffix
    again = read_deletion_vector(vector.to_bytes(), suffix, "here", 3 * count, count)
    assert again.deleted.tolist() == vector.deleted.tolist()
