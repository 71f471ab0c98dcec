from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.index.inverted.partitions import FORMS, assert_equal, contents_of, random_texts, segment_of, written

from lance_duck.errors import InternalError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.index.inverted import write
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.layout import ARROW, InvertedParameters
from lance_duck.index.inverted.open import open_segment
from lance_duck.text.filters import STEMMER

TEXTS = random_texts(700)


def without_positions(contents: PartitionContents) -> PartitionContents:
    return PartitionContents(
        contents.documents, contents.terms, contents.bounds, contents.document_ids, contents.frequencies
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("with_position", [True, False])
def test_written_segments_read_back(tmp_path, form, with_position) -> None:
    parts = [contents_of(TEXTS), contents_of([["one"]], [7])]
    segment = segment_of(tmp_path, parts, with_position=with_position, **form)
    for partition, contents in zip(segment.partitions, parts, strict=True):
        assert partition.has_positions == with_position
        assert_equal(partition.contents(), contents if with_position else without_positions(contents))
    assert segment.num_documents == 701
    assert segment.total_tokens == sum(map(len, TEXTS)) + 1
    assert segment.statistics() == {
        "stemmer": STEMMER,
        "params": {"base_tokenizer": "simple"},
        "num_tokens": len(parts[0].terms) + 1,
        "num_docs": 701,
    }
    assert segment.parameters.document_granularity == "row"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [1, 700, 5000])
def test_postings_encoded_in_parallel_are_identical(tmp_path, monkeypatch, form, most) -> None:
    contents = contents_of(TEXTS)
    (whole,) = segment_of(tmp_path / "whole", [contents], with_position=True, **form).partitions
    monkeypatch.setattr(write, "ENCODED_POSTINGS", most)
    (partition,) = segment_of(tmp_path / "turns", [contents], with_position=True, **form).partitions
    assert_equal(partition.contents(), contents)
    ids = np.arange(partition.num_terms)
    ours, theirs = partition.postings(ids), whole.postings(ids)
    assert ours.blocks.data.tobytes() == theirs.blocks.data.tobytes()
    assert ours.impacts.data.tobytes() == theirs.impacts.data.tobytes()


@pytest.mark.parametrize("form", [{}, {"token_set_format": ARROW}])
def test_terms_are_found_in_any_form(tmp_path, form) -> None:
    contents = contents_of(TEXTS)
    (partition,) = segment_of(tmp_path, [contents], **form).partitions
    words = contents.terms.to_pylist()
    assert partition.term_ids([*words, b"w", b"w9999", b""]).tolist() == [*range(len(words)), -1, -1, -1]
    everything = partition.sorted_terms
    assert everything.terms.to_pylist() == sorted(words)
    assert [words[i] for i in everything.ids] == sorted(words)
    assert partition.term_ids([]).tolist() == []


def test_postings_are_read_together_and_cached(tmp_path) -> None:
    contents = contents_of(TEXTS)
    (partition,) = segment_of(tmp_path, [contents], with_position=True).partitions
    ids = np.array([30, 0, 7])
    postings = partition.postings(ids)
    assert postings.lengths.tolist() == np.diff(contents.bounds)[ids].tolist()
    assert partition.document_frequencies(np.array([30, -1, 0])).tolist() == [
        postings.lengths[0],
        0,
        postings.lengths[1],
    ]
    documents, frequencies = postings.decoded()
    spans = [slice(contents.bounds[i], contents.bounds[i + 1]) for i in ids]
    assert documents.tolist() == [d for span in spans for d in contents.document_ids[span].tolist()]
    assert frequencies.tolist() == [f for span in spans for f in contents.frequencies[span].tolist()]
    assert partition.postings(ids[1:]).decoded()[0].tolist() == documents[postings.lengths[0] :].tolist()
    with pytest.raises(InternalError, match="the term ids are out of range"):
        partition.postings(np.array([partition.num_terms]))


def test_positions_of_chosen_terms_are_read(tmp_path) -> None:
    contents = contents_of(TEXTS)
    for number, form in enumerate(FORMS):
        (partition,) = segment_of(tmp_path / str(number), [contents], with_position=True, **form).partitions
        ids = np.array([1, 9])
        postings = partition.postings(ids)
        found = partition.positions(ids, postings.bounds, postings.decoded()[1])
        starts = np.append(0, np.cumsum(contents.frequencies)).astype(np.int64)
        spans = [slice(starts[contents.bounds[i]], starts[contents.bounds[i + 1]]) for i in ids]
        assert contents.positions is not None
        assert found.tolist() == [p for span in spans for p in contents.positions[span].tolist()]


def test_missing_positions_are_rejected(tmp_path) -> None:
    contents = contents_of(TEXTS)
    (partition,) = segment_of(tmp_path, [contents]).partitions
    postings = partition.postings(np.array([0]))
    with pytest.raises(UnsupportedError, match="does not store positions"):
        partition.positions(np.array([0]), postings.bounds, postings.decoded()[1])
    with pytest.raises(InvalidInputError, match="does not store positions"):
        segment_of(tmp_path, [without_positions(contents)], with_position=True)


def test_elements_of_lists_are_documents(tmp_path) -> None:
    plain = contents_of([["a"], ["b"], ["c"]])
    documents = Documents(
        np.array([4, 4, 9], np.uint64),
        np.array([1, 1, 1], np.uint32),
        (np.array([0, 1, 0], np.uint32), np.array([5, 6, 7], np.uint32)),
    )
    contents = PartitionContents(documents, plain.terms, plain.bounds, plain.document_ids, plain.frequencies)
    segment = segment_of(tmp_path, [contents])
    assert_equal(segment.partitions[0].contents(), contents)
    assert segment.parameters.document_granularity == "list_element"


def test_a_segment_without_partitions_is_empty(tmp_path) -> None:
    segment = segment_of(tmp_path, [])
    assert (segment.partitions, segment.num_documents, segment.total_tokens) == ((), 0, 0)
    segment.prewarm()


def test_a_prewarmed_segment_reads_no_files(tmp_path) -> None:
    contents = contents_of(TEXTS)
    files = written(tmp_path, [contents], InvertedParameters())
    segment = open_segment(files)
    before = segment.nbytes
    segment.prewarm()
    assert segment.nbytes > before + 4 * contents.documents.total_tokens // 8
    for path in Path(tmp_path, files.directory).iterdir():
        path.unlink()
    assert segment.partitions[0].postings(np.array([3])).decoded()[0].tolist()
    assert segment.partitions[0].documents.num_tokens.tolist() == contents.documents.num_tokens.tolist()


def test_missing_files_are_named(tmp_path) -> None:
    files = written(tmp_path, [contents_of([["a"]])], InvertedParameters())
    Path(tmp_path, files.directory, "part_0_docs.lance").unlink()
    with pytest.raises(NotFoundError, match="part_0_docs"):
        _ = open_segment(files).num_documents
