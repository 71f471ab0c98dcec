"""Files of inverted indexes that both libraries read, search, extend and merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import DocumentGranularity, FullTextOperator, MatchQuery, PhraseQuery
from unit.index.inverted.partitions import contents_of, random_texts

from lance_duck.commit import CreateIndex, commit
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.layout import ARROW
from lance_duck.index.inverted.open import InvertedSegment, open_segment
from lance_duck.index.inverted.write import write_metadata, write_partition
from lance_duck.index.opened import segment_files
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import index_from_proto
from lance_duck.wire.pb import table_pb2

FORMS: list[dict[str, Any]] = [
    {},
    {"with_position": True},
    {"with_position": True, "format_version": 1},
    {"with_position": True, "format_version": 3, "block_size": 256},
    {"format_version": 3},
]
PLAIN = {"stem": False, "remove_stop_words": False}
FILES = ("part_0_tokens.lance", "part_0_docs.lance", "part_0_invert.lance", "metadata.lance")
TEXTS = random_texts(1200, words=300, most=25)
# One document has more than 128 occurrences of a term, one has exactly 128.
TEXTS[3:5] = [["often"] * 300 + ["w1"], ["often"] * 128]
QUERIES = ("w0", "w7", "w299", "w0 w1 w2", "w3 w50 w120 w280", "w0 w0 often")


def table(root: Path, form: dict[str, Any], texts: list[list[str]] = TEXTS) -> str:
    uri = str(root / "t.lance")
    data = pa.table({"t": [" ".join(text) for text in texts], "id": range(len(texts))})
    lance.write_dataset(data, uri, max_rows_per_file=500).create_scalar_index("t", "INVERTED", **PLAIN, **form)
    return uri


def opened(uri: str) -> tuple[Snapshot, SegmentReader, InvertedSegment]:
    snapshot = open_snapshot(uri)
    (metadata,) = snapshot.indices
    files = segment_files(snapshot, metadata)
    return snapshot, files, open_segment(files)


def by_term(contents: PartitionContents) -> dict[str, list[tuple[int, int, list[int]]]]:
    """Row, frequency and positions of each posting of each term."""
    starts = np.append(0, np.cumsum(contents.frequencies.astype(np.int64)))
    rows = contents.documents.row_ids[contents.document_ids].tolist()
    found = None if contents.positions is None else contents.positions.tolist()
    result = {}
    for i, term in enumerate(contents.terms.to_pylist()):
        span = range(contents.bounds[i], contents.bounds[i + 1])
        places = [[] if found is None else found[starts[j] : starts[j + 1]] for j in span]
        counts = contents.frequencies[span.start : span.stop].tolist()
        result[term.decode()] = sorted(zip(rows[span.start : span.stop], counts, places, strict=True))
    return result


def rewritten(uri: str, *, divide: bool = False, **changes: Any) -> None:
    """Replace the segment of pylance by one written here with the same contents."""
    snapshot, _, segment = opened(uri)
    (old,) = snapshot.indices
    parts = [partition.contents() for partition in segment.partitions]
    if divide:
        parts = halves(parts[0])
    parameters = segment.parameters
    for name, value in changes.items():
        object.__setattr__(parameters, name, value)
    with SegmentWriter(snapshot.place(None)[0], uuid=uuid4()) as writer:
        for number, contents in enumerate(parts):
            write_partition(writer, number, contents, parameters)
        write_metadata(writer, range(len(parts)), parameters)
    proto = table_pb2.IndexMetadata()
    proto.CopyFrom(old.proto)
    proto.uuid.uuid = writer.uuid.bytes
    del proto.files[:]
    for name, size in writer.files:
        proto.files.add(path=name, size_bytes=size)
    commit(snapshot, CreateIndex((index_from_proto(proto, "new"),), (old,)))


def halves(contents: PartitionContents) -> list[PartitionContents]:
    """Two partitions of the documents of one."""
    rows = contents.documents.row_ids
    texts: list[list[str]] = [[""] * n for n in contents.documents.num_tokens.tolist()]
    places = {row: i for i, row in enumerate(rows.tolist())}
    for term, postings in by_term(contents).items():
        for row, _, found in postings:
            for position in found:
                texts[places[row]][position] = term
    middle = len(texts) // 3
    return [contents_of(texts[:middle], rows[:middle].tolist()), contents_of(texts[middle:], rows[middle:].tolist())]


def answers(uri: str, *, phrases: bool, fuzzy: bool = True) -> list[dict[int, float]]:
    """Score by row of every query, as pylance answers."""
    queries: list[Any] = [MatchQuery(text, "t") for text in QUERIES]
    queries += [MatchQuery(text, "t", operator=FullTextOperator.AND) for text in QUERIES[3:]]
    if fuzzy:
        queries += [MatchQuery("w29", "t", fuzziness=1)]
    if phrases:
        queries += [PhraseQuery("w0 w1", "t"), PhraseQuery("w0 w2", "t", slop=2), PhraseQuery("often often w1", "t")]
    tables = [
        lance.dataset(uri).to_table(columns=["id", "_score"], full_text_query=query, fast_search=True)
        for query in queries
    ]
    tables += [
        lance.dataset(uri).to_table(columns=["id", "_score"], full_text_query=query, limit=10) for query in queries
    ]
    # Ties have no order, so the scores of a limited answer are compared.
    full = len(queries)
    rows = [dict(zip(t["id"].to_pylist(), t["_score"].to_pylist(), strict=True)) for t in tables[:full]]
    return rows + [dict(enumerate(t["_score"].to_pylist())) for t in tables[full:]]


@pytest.mark.parametrize("form", FORMS)
def test_full_text_indexes_built_by_pylance_are_read(tmp_path, form) -> None:
    snapshot, _, segment = opened(table(tmp_path, form))
    (partition,) = segment.partitions
    rows = [(i // 500 << 32) + i % 500 for i in range(len(TEXTS))]
    expected = by_term(contents_of(TEXTS, rows))
    contents = partition.contents()
    if not form.get("with_position"):
        assert contents.positions is None
        expected = {term: [(row, count, []) for row, count, _ in each] for term, each in expected.items()}
    assert by_term(contents) == expected
    assert segment.num_documents == len(TEXTS)
    assert segment.total_tokens == sum(map(len, TEXTS))
    (stats,) = lance.dataset(snapshot.uri).stats.index_stats("t_idx")["indices"]
    ours = {key: value for key, value in segment.statistics().items() if key != "stemmer"}
    assert {key: stats[key] for key in ours} == ours


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_written_like_in_pylance(tmp_path, form) -> None:
    uri = table(tmp_path, form)
    _, files, _ = opened(uri)
    rewritten(uri)
    _, ours, _ = opened(uri)
    for name in FILES:
        theirs, mine = files.open(name), ours.open(name)
        assert mine.schema.equals(theirs.schema, check_metadata=True), name
        assert mine.metadata == theirs.metadata
        for column, left, right in zip(
            theirs.schema.names, theirs.read(theirs.schema.names), mine.read(mine.schema.names), strict=True
        ):
            assert left.equals(right), f"{name}: {column}"


@pytest.mark.parametrize("form", FORMS)
def test_pylance_returns_the_same_results_from_written_segments(tmp_path, form) -> None:
    uri, phrases = table(tmp_path, form), bool(form.get("with_position"))
    before = answers(uri, phrases=phrases)
    rewritten(uri)
    assert answers(uri, phrases=phrases) == before


def test_pylance_returns_the_same_results_from_two_partitions(tmp_path) -> None:
    uri = table(tmp_path, {"with_position": True})
    # pylance expands fuzzy terms separately in each partition.
    before = answers(uri, phrases=True, fuzzy=False)
    rewritten(uri, divide=True)
    assert len(opened(uri)[2].partitions) == 2
    assert answers(uri, phrases=True, fuzzy=False) == before


def test_a_sorted_term_column_is_read_and_written(tmp_path) -> None:
    uri = table(tmp_path, {})
    before = answers(uri, phrases=False)
    contents = opened(uri)[2].partitions[0].contents()
    rewritten(uri, token_set_format=ARROW)
    segment = opened(uri)[2]
    assert segment.parameters.token_set_format == ARROW
    assert by_term(segment.partitions[0].contents()) == by_term(contents)
    assert answers(uri, phrases=False) == before


@pytest.mark.parametrize("form", FORMS)
def test_pylance_appends_to_merges_and_compacts_written_segments(tmp_path, form) -> None:
    phrases = bool(form.get("with_position"))
    results = []
    for name in ("ours", "theirs"):
        root = tmp_path / name
        root.mkdir()
        uri = table(root, form)
        if name == "ours":
            rewritten(uri)
        dataset = lance.dataset(uri)
        more = [" ".join(text) for text in random_texts(300, words=300, seed=9)]
        dataset.insert(pa.table({"t": more, "id": range(5000, 5300)}))
        dataset.delete("id % 7 = 3")
        dataset.optimize.optimize_indices(num_indices_to_merge=1)
        answers_after = [answers(uri, phrases=phrases)]
        lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=10_000)
        answers_after.append(answers(uri, phrases=phrases))
        results.append(answers_after)
        segment = opened(uri)[2]
        assert sum(len(p.contents().documents) for p in segment.partitions) == segment.num_documents
    assert results[0] == results[1]


def test_list_elements_are_documents(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = [["a b", "c"], None, [], ["b", ""], [None, "x y"]]
    dataset = lance.write_dataset(pa.table({"t": rows, "id": range(5)}), uri)
    dataset.create_scalar_index("t", "INVERTED", **PLAIN, document_granularity=DocumentGranularity.LIST_ELEMENT)
    segment = opened(uri)[2]
    assert segment.parameters.document_granularity == "list_element"
    documents = segment.partitions[0].contents().documents
    places = zip(documents.row_ids.tolist(), *(each.tolist() for each in documents.elements), strict=True)
    assert sorted(places) == [(0, 0), (0, 1), (3, 0), (3, 1), (4, 0), (4, 1)]
    query = MatchQuery("b", "t", document_granularity=DocumentGranularity.LIST_ELEMENT)
    before = dataset.to_table(full_text_query=query).to_pylist()
    rewritten(uri)
    assert lance.dataset(uri).to_table(full_text_query=query).to_pylist() == before
