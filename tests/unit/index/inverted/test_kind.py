"""Full-text segments are built of texts, and merged: living rows have their terms, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.index.inverted.postings import rows_of
from unit.index.segments import Segments, stay

from lance_duck.errors import UnsupportedError
from lance_duck.index.inverted import build as build_module
from lance_duck.index.inverted import partition as partition_module
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.kind import MergeInput
from lance_duck.index.query import Null

PLAIN = {"stem": False, "remove_stop_words": False, "with_position": True}


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(INVERTED, tmp_path)


def contents(index: Any) -> dict[int, list[str]]:
    """Return the terms of each row, in order."""
    rows: dict[int, list[str]] = {}
    for partition in index.partitions:
        rows |= {row: [word for word, _ in words] for row, words in rows_of(partition.contents()).items()}
    return rows


def built(segments: Segments, texts: list[str | None], first: int = 0, **parameters: Any) -> Any:
    rows = range(first, first + len(texts))
    return segments.build(pa.array(texts, pa.string()), rows, parameters={**PLAIN, **parameters})


def test_rows_with_terms_are_documents(segments: Segments) -> None:
    index = built(segments, ["The lake", None, "", "duck, lake!"], 10)
    assert contents(index) == {10: ["the", "lake"], 13: ["duck", "lake"]}
    assert index.statistics()["num_docs"] == 2
    assert segments.details.version == 2


def test_a_list_of_strings_is_one_document(segments: Segments) -> None:
    lists = pa.array([["a b", None, "c"], [], None], pa.list_(pa.string()))
    assert contents(segments.build(lists, parameters=PLAIN)) == {0: ["a", "b", "c"]}


def test_no_rows_give_a_segment_without_partitions(segments: Segments) -> None:
    assert built(segments, []).partitions == ()
    assert built(segments, [None, ""]).partitions == ()


def test_indexed_rows_are_reported_as_progress(segments: Segments) -> None:
    told: list[int] = []
    segments.build(pa.array(["a"] * 2500), parameters=PLAIN, progress=told.append)
    assert told == [1000, 2000, 2500]


def test_partitions_are_as_large_as_the_memory_limit_allows(segments: Segments) -> None:
    texts = [f"word{i} again" for i in range(3000)]
    index: Any = segments.build(pa.array(texts), parameters=PLAIN, memory_limit=400_000)
    assert len(index.partitions) > 1
    assert contents(index) == {i: text.split() for i, text in enumerate(texts)}


def test_small_memory_limits_do_not_create_one_partition_per_document(segments: Segments) -> None:
    texts = [f"word{i} again" for i in range(3000)]
    index: Any = segments.build(pa.array(texts), parameters={**PLAIN, "memory_limit": "1B"})
    assert 1 < len(index.partitions) < 30
    assert contents(index) == {i: text.split() for i, text in enumerate(texts)}


def test_large_batches_are_cut_for_the_threads(segments: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "TEXT_BYTES", 50)
    texts = [f"word{i} again" for i in range(300)]
    for workers in (1, 3):
        index: Any = segments.build(pa.array(texts), parameters={**PLAIN, "num_workers": workers})
        assert contents(index) == {i: text.split() for i, text in enumerate(texts)}


def test_merged_segments_keep_live_rows_and_add_new_ones(segments: Segments) -> None:
    first, second = built(segments, ["a b", "b c"]), built(segments, ["c d", "d e"], 10)

    def follow(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows + np.uint64(100), rows != 1

    parts = [MergeInput(first, follow), MergeInput(second, stay)]
    index: Any = segments.merge(parts, pa.array(["e f", None]), [20, 21])
    assert contents(index) == {100: ["a", "b"], 10: ["c", "d"], 11: ["d", "e"], 20: ["e", "f"]}
    assert len(index.partitions) == 1
    limited: Any = segments.merge(parts, pa.array(["e f", None]), [20, 21], memory_limit=4)
    assert len(limited.partitions) == 3
    assert contents(limited) == contents(index)


def test_a_merge_keeps_the_format_and_stop_words(segments: Segments) -> None:
    index = built(segments, ["a lake"], format_version=1, custom_stop_words=["a"], remove_stop_words=True)
    merged: Any = segments.merge([MergeInput(index, stay, b"as it was")], pa.array(["a duck"]), [5])
    assert contents(merged) == {0: ["lake"], 5: ["duck"]}
    assert merged.parameters == index.parameters
    assert (segments.details.version, segments.details.value) == (1, b"as it was")


def test_segments_with_different_analysers_are_not_merged(segments: Segments) -> None:
    parts = [MergeInput(built(segments, ["a"], stem=stem), stay) for stem in (True, False)]
    with pytest.raises(UnsupportedError, match="different full-text parameters"):
        segments.merge(parts)


def test_an_unsupported_analyser_rejects_new_rows_but_allows_a_remap(segments: Segments) -> None:
    index = built(segments, ["a b"])
    index.parameters = replace(index.parameters, params={**index.parameters.params, "base_tokenizer": "icu"})
    merged: Any = segments.merge([MergeInput(index, stay)])
    assert contents(merged) == {0: ["a", "b"]}
    assert merged.parameters == index.parameters
    with pytest.raises(UnsupportedError, match="icu"):
        segments.merge([MergeInput(index, stay)], pa.array(["c"]), [1])


def test_predicates_are_not_answered() -> None:
    assert not INVERTED.answers(Null(), pa.string())


@pytest.mark.parametrize(
    ("type_", "supported"),
    [
        (pa.string(), True),
        (pa.large_string(), True),
        (pa.string_view(), True),
        (pa.list_(pa.string()), True),
        (pa.large_list(pa.large_string()), True),
        (pa.binary(), False),
        (pa.dictionary(pa.int32(), pa.string()), False),
        (pa.list_(pa.int32()), False),
        (pa.list_(pa.list_(pa.string())), False),
        (pa.int64(), False),
    ],
    ids=str,
)
def test_only_strings_and_lists_of_strings_are_supported(type_: pa.DataType, supported: bool) -> None:
    assert INVERTED.supports(type_) is supported


@pytest.mark.parametrize("form", [{}, {"block_size": 256, "format_version": 3}, {"format_version": 1}])
def test_a_large_partition_is_rewritten_in_several_passes(
    segments: Segments, form: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "LEAST_PIECE", 1)
    texts = [f"word{i % 40} again word{i} {'x ' * (i % 5)}" for i in range(1500)]
    index = built(segments, texts, **form)

    def follow(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows + 7, (rows % 3 > 0) & (rows != 40)

    parts = [MergeInput(index, follow)]
    (whole,) = segments.merge(parts).partitions  # type: ignore[attr-defined]
    small: Any = segments.merge(parts, memory_limit=10_000)
    (in_pieces,) = small.partitions
    assert len(list(index.partitions[0].pieces(2_500))) > 3
    assert index.partitions[0].decoded_bytes > 2_500
    assert rows_of(in_pieces.contents()) == rows_of(whole.contents())
    assert in_pieces.contents().terms.equals(whole.contents().terms)
    assert contents(small) == {i + 7: text.split() for i, text in enumerate(texts) if i % 3 and i != 40}


def test_small_memory_limits_do_not_create_one_piece_per_term(segments: Segments) -> None:
    index = built(segments, [f"word{i} again{i}" for i in range(12_000)])
    (partition,) = index.partitions
    pieces = list(partition.pieces(1))
    assert 1 < len(pieces) <= partition.decoded_bytes // partition_module.LEAST_PIECE + 1
    assert sum(len(piece.terms) for piece in pieces) == partition.num_terms == 24_000


def test_large_and_small_partitions_are_merged_together(segments: Segments) -> None:
    texts = [f"word{i} again" for i in range(900)]
    large, small = built(segments, texts), built(segments, ["a duck"], 1000)
    for parts in ([large, small], [small, large], [small, large, large]):
        merged: Any = segments.merge([MergeInput(index, stay) for index in parts], memory_limit=20_000)
        assert len(merged.partitions) == len(parts)
        assert contents(merged) == {i: text.split() for i, text in enumerate(texts)} | {1000: ["a", "duck"]}


@pytest.mark.parametrize("with_position", [False, True])
def test_documents_without_terms_beyond_the_limit_are_rewritten(segments: Segments, with_position: bool) -> None:
    parameters = {**PLAIN, "with_position": with_position, "document_granularity": "list_element"}
    lists = pa.array([["", "!"]] * 300, pa.list_(pa.string()))
    index: Any = segments.build(lists, parameters=parameters)
    (partition,) = index.partitions
    assert partition.num_terms == 0
    assert partition.decoded_bytes > 1000
    merged: Any = segments.merge([MergeInput(index, stay)], memory_limit=4000)
    (rewritten,) = merged.partitions
    assert rewritten.num_terms == 0
    assert rewritten.documents.row_ids.tolist() == [row for row in range(300) for _ in range(2)]
    assert rewritten.documents.elements[0].tolist() == [0, 1] * 300
