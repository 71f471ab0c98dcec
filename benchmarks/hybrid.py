"""How fast are searches for a vector and words, ranked by reciprocal ranks?

All contestants use one table, whose indexes pylance built. The peers are LanceDB's hybrid search, and two pylance
searches that Python merges. Each measurement runs `TIMES` queries with new words and vectors.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any

import lance
import lancedb
import numpy as np
import pyarrow as pa
from lance.query import MatchQuery

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, clock_of, options, race, report
from benchmarks._texts import texts, vocabulary

DIM = 32
BEST = 10
CANDIDATES = 40
TIMES = 10
RANK = 60
"""What LanceDB adds to a rank before it inverts it."""
NOTE = "All contestants use indexes that pylance built."


def main() -> None:
    """Race through queries."""
    parser = options((__doc__ or "").split("\n")[0], rows=50_000, rounds=7)
    add_clock(parser)
    arguments = parser.parse_args()
    path = table(arguments.rows)
    vectors = np.random.default_rng(1).standard_normal((1_000, DIM), np.float32)
    ours, theirs = ld.dataset(path), lance.dataset(path)
    place: Any = lancedb.connect(str(DATA)).open_table(f"hybrid-{arguments.rows}")
    searches: dict[str, Callable[[Any, str], object]] = {
        OURS: lambda vector, words: ours.search(
            vector, full_text_query=words, k=BEST, method="rrf", columns=["id"], nprobes=20
        ),
        "LanceDB": lambda vector, words: (
            place.search(query_type="hybrid", vector_column_name="v", fts_columns="s")
            .vector(vector)
            .text(words)
            .nprobes(20)
            .select(["id"])
            .limit(BEST)
            .to_arrow()
        ),
        "pylance, two searches": lambda vector, words: merged(theirs, vector, words),
    }
    words = vocabulary()
    contestants = {who: partial(ask, search, vectors, words, count()) for who, search in searches.items()}
    case = race("one vector and three words", contestants, arguments.rounds, clock_of(arguments))
    report(f"Search {arguments.rows:,} rows for a vector and words, {TIMES} times", [case], arguments, NOTE)


def ask(search: Callable[[Any, str], object], vectors: np.ndarray, words: list[str], numbers: Iterator[int]) -> None:
    """Search several times, for another vector and other words each time."""
    for number in islice(numbers, TIMES):
        search(vectors[number % len(vectors)], " ".join(words[100 + 3 * number : 103 + 3 * number]))


def merged(dataset: lance.LanceDataset, vector: Any, words: str) -> pa.Table:
    """Return the best rows of two searches of pylance, by inverse ranks."""
    nearest = {"column": "v", "q": vector, "k": CANDIDATES, "nprobes": 20}
    by_vector = dataset.to_table(columns=["id", "_distance"], nearest=nearest)
    by_words = dataset.to_table(columns=["id", "_score"], full_text_query=MatchQuery(words, "s"), limit=CANDIDATES)
    scores: dict[int, float] = {}
    for found in (by_vector, by_words):
        for rank, row in enumerate(found.column("id").to_pylist()):
            scores[row] = scores.get(row, 0.0) + 1 / (rank + RANK)
    best = sorted(scores, key=lambda row: -scores[row])[:BEST]
    return pa.table({"id": best, "_relevance_score": [scores[row] for row in best]})


def table(rows: int) -> str:
    """Write a table and its indexes, unless they are there."""
    path = DATA / f"hybrid-{rows}.lance"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        values = np.random.default_rng(0).standard_normal(rows * DIM, np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), DIM)
        dataset = lance.write_dataset(pa.table({"id": range(rows), "s": texts(rows), "v": vectors}), unfinished)
        dataset.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False)
        dataset.create_index("v", "IVF_FLAT", metric="l2", num_partitions=64)
        unfinished.rename(path)
    return str(path)


if __name__ == "__main__":
    main()
