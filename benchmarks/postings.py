"""How fast are inverted index partitions read, written and searched, and how large are they?

Word frequencies follow a natural language. pylance builds the index, which has one partition. The searches compare
kernels, after term lookup, with a whole query of pylance. Planning is therefore part of the difference.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
from lance.query import FullTextOperator, MatchQuery

from benchmarks._harness import DATA, OURS, Case, options, race, report
from benchmarks._texts import vocabulary
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs import fst
from lance_duck.index.inverted.codecs.scores import inverse_frequencies
from lance_duck.index.inverted.columns import read_columns
from lance_duck.index.inverted.open import InvertedSegment, open_segment
from lance_duck.index.inverted.search import WeightedTerms, best_documents, matching_documents
from lance_duck.index.inverted.terms import SortedTerms
from lance_duck.index.inverted.write import write_metadata, write_partition
from lance_duck.index.opened import segment_files
from lance_duck.snapshot import open_snapshot
from lance_duck.store import open_store

WORDS = 30_000
QUERIES = {
    "1 term, common": ("w0", False),
    "1 term, in one document of 100": ("w60", False),
    "1 term, rare": ("w9000", False),
    "3 terms OR, common": ("w1 w2 w3", False),
    "3 terms OR, common, middle, rare": ("w1 w70 w5000", False),
    "3 terms AND, common": ("w1 w2 w3", True),
    "3 terms AND, common, middle, rare": ("w1 w70 w5000", True),
    "8 terms OR": ("w1 w5 w20 w80 w300 w1000 w4000 w12000", False),
}


def main() -> None:
    """Race through reading, writing and searching."""
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=15)
    arguments = parser.parse_args()
    uri = table(arguments.rows)
    dataset = lance.dataset(uri)
    cases: list[Case] = []
    segment = opened(uri)
    contents = segment.partitions[0].contents()
    for name, work in {
        "open, and decode everything": lambda: opened(uri).partitions[0].contents(),
        "write": lambda: written(segment, contents),
        "all terms": lambda: opened(uri).partitions[0].sorted_terms,
    }.items():
        if arguments.only in name:
            cases.append(race(name, {OURS: work}, min(5, arguments.rounds)))
    directory = Path(uri, "_indices", str(open_snapshot(uri).indices[0].uuid))
    ours = written(segment, contents)
    for name in ("tokens", "docs", "invert"):
        sizes = {"pylance": (directory / f"part_0_{name}.lance").stat().st_size, OURS: ours[f"part_0_{name}.lance"]}
        cases.append(Case(f"size of {name}", {who: [sizes[who] / 1e6] for who in (OURS, "pylance")}, "MB"))
    for name, (text, every) in QUERIES.items():
        if arguments.only in name:
            cases.append(race(name, searches(segment, dataset, text, every), arguments.rounds))
    if arguments.only in "read":
        cases += reading(uri, arguments.rounds)
    names = pa.array(sorted(word.encode() for word in vocabulary()), pa.large_binary())
    terms = SortedTerms(names, np.random.default_rng(4).permutation(len(names)).astype(np.int64))
    for bits in (8, 12, 18):
        if arguments.only in "automaton":
            cases += automaton(terms, bits, arguments.rounds)
    report(f"Inverted index of {arguments.rows:,} texts", cases, arguments)


def table(rows: int) -> str:
    """Make a table with an index, unless it is there."""
    path = DATA / f"postings-{rows}.lance"
    if not path.exists():
        random = np.random.default_rng(1)
        shares = 1 / np.arange(1, WORDS + 1)
        lengths = random.integers(3, 41, rows)
        words = random.choice(WORDS, int(lengths.sum()), p=shares / shares.sum())
        names = np.array([f"w{i}" for i in range(WORDS)], object)
        texts = [" ".join(names[part]) for part in np.split(words, np.cumsum(lengths)[:-1])]
        dataset = lance.write_dataset(pa.table({"t": texts}), path)
        dataset.create_scalar_index("t", "INVERTED", stem=False, remove_stop_words=False)
    return str(path)


def opened(uri: str) -> InvertedSegment:
    """Open the segment of a table."""
    return open_segment(segment_files_of(uri))


def segment_files_of(uri: str) -> SegmentReader:
    """Return the files of the segment of a table."""
    snapshot = open_snapshot(uri)
    return segment_files(snapshot, snapshot.indices[0])


def written(segment: InvertedSegment, contents: Any) -> dict[str, int]:
    """Write a segment, and return the sizes of its files."""
    folder = DATA / "postings-written"
    shutil.rmtree(folder, ignore_errors=True)
    with SegmentWriter(open_store(str(folder)), uuid=uuid4()) as writer:
        write_partition(writer, 0, contents, segment.parameters)
        write_metadata(writer, [0], segment.parameters)
    return dict(writer.files)


def automaton(terms: SortedTerms, bits: int, rounds: int) -> list[Case]:
    """Return the build time and the size of a term automaton that remembers 2^`bits` nodes."""
    kept, fst.FST_SLOTS = fst.FST_SLOTS, 1 << bits
    name = f"automaton, 2^{bits} nodes remembered"
    case = race(name, {OURS: lambda: fst.fst_bytes(terms.terms, terms.ids)}, rounds)
    size = len(fst.fst_bytes(terms.terms, terms.ids))
    fst.FST_SLOTS = kept
    return [case, Case(f"size, {name}", {OURS: [size / 1e3]}, "kB")]


def reading(uri: str, rounds: int) -> list[Case]:
    """Return the read times of one posting list and of all posting lists."""
    segment = opened(uri)
    file = segment_files_of(uri).open(layout.postings_file(0))
    numbers = np.random.default_rng(2).integers(0, segment.partitions[0].num_terms, 1000)
    cases = []
    for name in (layout.POSTING, layout.IMPACTS):
        types, rows = {name: layout.BLOBS}, iter(numbers.tolist())
        one = {OURS: lambda types=types, rows=rows: read_columns(file, types, np.array([next(rows)]))}
        cases.append(race(f"read {name} of a term", one, rounds))
        cases.append(race(f"read {name} of all terms", {OURS: lambda types=types: read_columns(file, types)}, rounds))
        cases.append(Case(f"size of {name}", {OURS: [file.stored_bytes(name) / 1e6]}, "MB"))
    return cases


def searches(segment: InvertedSegment, dataset: Any, text: str, every: bool) -> dict[str, Callable[[], object]]:
    """Return the same search, three ways."""
    (partition,) = segment.partitions
    average = float(np.float32(partition.total_tokens) / np.float32(partition.num_documents))
    keys = partition.documents.row_ids
    words = [word.encode() for word in text.split()]

    def terms() -> WeightedTerms:
        ids = partition.term_ids(words)
        weights = inverse_frequencies(partition.num_documents, partition.document_frequencies(ids))
        return WeightedTerms.plain(ids, weights, every=every)

    def all_scores() -> object:
        documents, scores = matching_documents(partition, terms(), average)
        return documents[np.lexsort((keys[documents], -scores))[:10]]

    operator = FullTextOperator.AND if every else FullTextOperator.OR
    query = MatchQuery(text, "t", operator=operator)
    return {
        OURS: lambda: best_documents(partition, terms(), average, keys, 10),
        "every posting": all_scores,
        "pylance": lambda: dataset.to_table(columns=["_rowid", "_score"], full_text_query=query, limit=10),
    }


if __name__ == "__main__":
    main()
