from __future__ import annotations

import numpy as np

from lance_duck.rows import DeletionVector, RowIdIndex, read_row_ids
from lance_duck.rows.row_ids import RowIdSequence
from lance_duck.wire.pb import rowids_pb2


def sequence(*segments: dict[str, object]) -> RowIdSequence:
    return read_row_ids(rowids_pb2.RowIdSequence(segments=segments).SerializeToString(), "here")


def vector(*offsets: int) -> DeletionVector:
    return DeletionVector(np.array(offsets, np.uint32))


def test_ids_are_found_in_the_fragment_that_lists_them() -> None:
    fragments = [(0, sequence({"range": {"start": 0, "end": 10}})), (7, sequence({"range": {"start": 10, "end": 20}}))]
    addresses, lives = RowIdIndex(fragments, lambda _: None).addresses(np.array([19, 0, 20, 10], np.uint64))
    assert addresses.tolist() == [(7 << 32) + 9, 0, 0, 7 << 32]
    assert lives.tolist() == [True, True, False, True]


def test_a_moved_row_id_is_found_at_its_new_address() -> None:
    fragments = [
        (0, sequence({"range": {"start": 0, "end": 10}})),
        (1, sequence({"sorted_array": {"u64_array": {"values": np.array([3, 5], "<u8").tobytes()}}})),
    ]
    deletions = {0: vector(3, 5, 6), 1: None}
    addresses, lives = RowIdIndex(fragments, lambda i: deletions[i]).addresses(np.array([3, 4, 5, 6], np.uint64))
    assert addresses.tolist() == [1 << 32, 4, (1 << 32) + 1, 0]
    assert lives.tolist() == [True, True, True, False]


def test_deletion_vectors_are_read_only_for_fragments_with_hits() -> None:
    asked = []

    def deletions(place: int) -> None:
        asked.append(place)

    fragments = [(i, sequence({"range": {"start": i * 10, "end": i * 10 + 10}})) for i in range(5)]
    RowIdIndex(fragments, deletions).addresses(np.array([25], np.uint64))
    assert asked == [2]


def test_offsets_continue_across_segments_of_a_fragment() -> None:
    both = sequence({"range": {"start": 100, "end": 110}}, {"range": {"start": 0, "end": 5}})
    addresses, lives = RowIdIndex([(2, both)], lambda _: None).addresses(np.array([4, 109], np.uint64))
    assert addresses.tolist() == [(2 << 32) + 14, (2 << 32) + 9]
    assert lives.all()


def test_an_index_without_fragments_finds_nothing() -> None:
    addresses, lives = RowIdIndex([], lambda _: None).addresses(np.array([1, 2], np.int64))
    assert addresses.tolist() == [0, 0]
    assert not lives.any()
