"""Full-text search of struct fields in lists: both libraries find the same rows in each other's indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.query as theirs
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
import lance_duck.query as ours

OPTIONS = {"fsync": "false"}
WORDS = [*(f"w{i}" for i in range(5)), "the"]
STRUCTS = pa.list_(pa.struct([("t", pa.string()), ("n", pa.int32()), ("u", pa.list_(pa.string()))]))


def rows(seed: int, first: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)

    def text() -> str | None:
        return None if random.random() < 0.1 else " ".join(random.choice(WORDS, random.integers(0, 5)))

    def struct() -> dict[str, Any] | None:
        below = None if random.random() < 0.2 else [text() for _ in range(random.integers(0, 3))]
        return None if random.random() < 0.1 else {"t": text(), "n": 1, "u": below}

    lists = [None if random.random() < 0.1 else [struct() for _ in range(random.integers(0, 4))] for _ in range(count)]
    inner = pa.StructArray.from_arrays([pa.array(lists, STRUCTS)], ["a"])
    return pa.table({"id": range(first, first + count), "ls": pa.array(lists, STRUCTS), "s": inner})


def scores(dataset: Any, query: Any) -> dict[tuple[int, ...], float]:
    table = dataset.to_table(full_text_query=query, columns=["id", "_score"])
    return {(row["id"], *row.get("_doc_index", ())): row["_score"] for row in table.to_pylist()}


def same(uri: str, column: str, granularity: str) -> None:
    for kind, words in (("MatchQuery", "w1 w2"), ("PhraseQuery", "w1 the w2"), ("PhraseQuery", "w3 w4")):
        one, other = (
            getattr(q, kind)(words, column, document_granularity=q.DocumentGranularity[granularity])
            for q in (theirs, ours)
        )
        assert scores(ld.dataset(uri), other) == scores(lance.dataset(uri), one)


@pytest.mark.parametrize(
    ("column", "granularity", "stable"),
    [("ls.t", "ROW", True), ("ls.t", "LIST_ELEMENT", False), ("ls.u", "LIST_ELEMENT", True), ("s.a.t", "ROW", False)],
)
def test_text_fields_of_structs_in_lists_have_the_same_scores(tmp_path: Path, column, granularity, stable) -> None:
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(rows(1, 0, 120), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    mine, own = ld.dataset(uri, storage_options=OPTIONS), ours.DocumentGranularity[granularity]
    query = ours.MatchQuery("w1 w2", column, document_granularity=own)
    before = mine.to_table(full_text_query=query)
    if stable:
        element = theirs.DocumentGranularity[granularity]
        made.create_scalar_index(column, "INVERTED", with_position=True, document_granularity=element)
    else:
        mine.create_scalar_index(column, "INVERTED", with_position=True, document_granularity=own)
    same(uri, column, granularity)
    assert ld.dataset(uri).to_table(full_text_query=query).equals(before)
    suffix = "_idx" if granularity == "ROW" else "_list_element_idx"
    assert [index.name for index in lance.dataset(uri).describe_indices()] == [column + suffix]
    lance.dataset(uri).insert(rows(2, 1000, 40))
    lance.dataset(uri).delete("id % 7 = 3")
    sides = (ld.dataset(uri, storage_options=OPTIONS), lance.dataset(uri))
    sides[not stable].optimize.optimize_indices(num_indices_to_merge=4)
    same(uri, column, granularity)
    ld.dataset(uri).validate()
