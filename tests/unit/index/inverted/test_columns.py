from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, segment_of

from lance_duck.cache import SizedCache
from lance_duck.index.inverted import columns, layout
from lance_duck.index.inverted.columns import KeptTerms, TermColumns, read_columns
from lance_duck.index.inverted.partition import InvertedPartition

TEXTS = random_texts(700)
TYPES = {layout.POSTING: layout.BLOBS, layout.IMPACTS: layout.BLOBS}


def term_columns(partition: InvertedPartition, most: int) -> tuple[TermColumns, Any]:
    file = partition._files.open(layout.postings_file(0))
    return TermColumns(file, SizedCache(1 << 20, lambda value: value.nbytes), most), file


def test_whole_columns_and_single_terms_return_the_same_rows(tmp_path, monkeypatch) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    ids = np.array([9, 2, 30, 2])
    for meanwhile, whole in ((0, [False] * 4), (1 << 20, [True] * 4)):
        monkeypatch.setattr(columns, "READ_MEANWHILE", meanwhile)
        found, file = term_columns(partition, 1 << 20)
        everything = read_columns(file, TYPES)
        assert found.whole_blobs(TYPES) is None
        for is_whole in whole:
            arrays = found.read(TYPES, ids)
            assert [each.to_pylist() for each in arrays] == [[each[i].as_py() for i in ids] for each in everything]
            assert (found.whole_blobs(TYPES) is not None) == is_whole


def test_a_column_is_read_whole_once_single_reads_cost_as_much(tmp_path, monkeypatch) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    found, file = term_columns(partition, 1 << 20)
    monkeypatch.setattr(columns, "READ_MEANWHILE", -(-file.stored_bytes(layout.POSTING) // 3))
    seen = []
    for _ in range(4):
        found.read({layout.POSTING: layout.BLOBS}, np.array([1]))
        seen.append(found.whole_blobs({layout.POSTING: layout.BLOBS}) is not None)
    assert seen == [False, False, True, True]


def test_a_column_above_the_limit_is_not_cached_whole(tmp_path) -> None:
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    found, _ = term_columns(partition, 10)
    found.read(TYPES, np.array([1]))
    assert not found.keep(TYPES)
    assert found.whole_blobs(TYPES) is None


def test_terms_are_read_once_one_by_one_or_in_batches() -> None:
    asked: list[list[int]] = []

    def read(terms: np.ndarray) -> np.ndarray:
        asked.append(terms.tolist())
        return terms * 10

    cache: SizedCache[Any] = SizedCache(1 << 20, lambda value: value.nbytes)
    for arranged in (lambda values, places: values[places], None):
        kept = KeptTerms(
            cache, (arranged is None,), read, lambda values, i: values[i : i + 1], arranged, np.concatenate
        )
        for terms in ([7], [7, 3], [9, 8, 9], [9, 8, 9], [3, 7]):
            assert kept.of(terms).tolist() == [10 * term for term in terms]
            assert all(kept.of_term(term) is not None for term in terms)
    assert asked == [[7], [3], [8, 9], [7], [3], [9, 8]]


def test_blocks_read_with_impacts_are_not_read_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(columns, "READ_MEANWHILE", 0)
    (partition,) = segment_of(tmp_path, [contents_of(TEXTS)]).partitions
    assert partition.postings(np.array([3, 5]), with_impacts=False).impacts is None
    partition.postings(np.array([7, 9]))
    monkeypatch.setattr(partition._columns, "read_blobs", None)
    for ids in ([3, 5], [5], [9], [7, 9]):
        assert (
            partition.postings(np.array(ids), with_impacts=False).lengths.tolist() == partition._lengths[ids].tolist()
        )


@pytest.mark.parametrize("form", FORMS)
def test_searches_read_the_same_before_and_after(tmp_path, monkeypatch, form) -> None:
    segments = []
    for name, meanwhile in (("alone", 0), ("whole", 1 << 20)):
        monkeypatch.setattr(columns, "READ_MEANWHILE", meanwhile)
        (partition,) = segment_of(tmp_path / name, [contents_of(TEXTS)], with_position=True, **form).partitions
        read = []
        for ids in ([3], [7, 3], [40, 1, 7], [3]):
            postings = partition.postings(np.array(ids))
            assert postings.impacts is not None
            blocks = partition.position_blocks(np.array(ids))
            positions = (
                []
                if blocks is None
                else [blocks.data[a:b].tobytes() for a, b in zip(blocks.begins, blocks.ends, strict=True)]
            )
            read.append((*(each.tolist() for each in postings.decoded()), postings.lengths.tolist(), positions))
            read.append([each.tolist() for each in (postings.blocks.lists, postings.impacts.lists)])
        segments.append(read)
    assert segments[0] == segments[1]
