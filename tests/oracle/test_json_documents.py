"""JSON documents in full-text indexes: both libraries write equal indexes and answer from each other's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import lance.query as theirs
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
import lance_duck.query as ours
from lance_duck.index.catalog import catalog
from lance_duck.index.search import open_index
from lance_duck.snapshot import open_snapshot

OPTIONS = {"fsync": "false"}
WORDS = [*(f"w{i}" for i in range(6)), "the", "running", "Ünï"]
KEYS = ["a", "b", "c.d", "A b", ""]
VALUES = [1, 2.5, -3, 10**19, 10**22, 1e-7, 0.00012, True, False, None, -0.0, 1e16]
FORMS: list[dict[str, Any]] = [
    {"with_position": True},
    {"base_tokenizer": "ngram", "with_position": True},
    {"base_tokenizer": "raw", "format_version": 1},
    {"base_tokenizer": "whitespace", "block_size": 256, "format_version": 3, "stem": False},
]
QUERIES = [
    *("a,str,w1 w2", ",str,w1;b,str,running", "a,number,1", "A b,bool,true"),
    *("c.d,null,null", ",number,1e+16;,number,2.5"),
]


def rows(seed: int, first: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)

    def value(depth: int = 0) -> Any:
        chance = random.random()
        if depth < 3 and chance < 0.25:
            return {random.choice(KEYS).item(): value(depth + 1) for _ in range(random.integers(0, 4))}
        if depth < 3 and chance < 0.4:
            return [value(depth + 1) for _ in range(random.integers(0, 3))]
        return " ".join(random.choice(WORDS, random.integers(0, 5))) if chance < 0.75 else VALUES[random.integers(12)]

    texts = [None if random.random() < 0.1 else json.dumps(value()) for _ in range(count)]
    return pa.table({"id": pa.array(range(first, first + count)), "j": pa.array(texts, pa.json_())})


def postings(uri: str) -> dict[tuple[bytes, int], tuple[int, list[int]]]:
    """Frequency and positions of each term in each row."""
    snapshot = open_snapshot(uri)
    (index,) = catalog(snapshot)
    found = {}
    for segment in index.segments:
        opened: Any = open_index(snapshot, segment)
        for partition in opened.partitions:
            contents = partition.contents()
            starts = np.append(0, np.cumsum(contents.frequencies.astype(np.int64)))
            for number, term in enumerate(contents.terms.to_pylist()):
                for at in range(contents.bounds[number], contents.bounds[number + 1]):
                    places = contents.positions
                    own = [] if places is None else places[starts[at] : starts[at + 1]].tolist()
                    row = contents.documents.row_ids[contents.document_ids[at]].item()
                    found[term, row] = (contents.frequencies[at].item(), own)
    return found


def scores(dataset: Any, query: Any) -> dict[int, float]:
    table = dataset.to_table(full_text_query=query, columns=["id", "_score"])
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))


def same_answers(uri: str) -> int:
    """Compare what both answer, and return how many rows they found."""
    found = 0
    for query in QUERIES:
        for operator in ("OR", "AND"):
            one, other = (q.MatchQuery(query, "j", operator=q.FullTextOperator[operator]) for q in (theirs, ours))
            expected = scores(lance.dataset(uri), one)
            assert scores(ld.dataset(uri), other) == expected
            found += len(expected)
    assert found
    return found


@pytest.mark.parametrize("form", FORMS)
def test_json_documents_have_the_same_terms_and_scores_after_every_change(tmp_path: Path, form) -> None:
    one, other = str(tmp_path / "theirs.lance"), str(tmp_path / "ours.lance")
    lance.write_dataset(rows(1, 0, 150), one).create_scalar_index("j", "INVERTED", **form)
    written = ld.write_dataset(rows(1, 0, 150), other, storage_options=OPTIONS)
    written.create_scalar_index("j", "INVERTED", **form)
    assert postings(other) == postings(one)
    assert same_answers(one) == same_answers(other)
    for uri in (one, other):
        lance.dataset(uri).insert(rows(2, 1000, 40))
    ld.dataset(one, storage_options=OPTIONS).optimize.optimize_indices(num_indices_to_merge=3)
    lance.dataset(other).optimize.optimize_indices(num_indices_to_merge=3)
    assert same_answers(one) == same_answers(other)
    ld.dataset(other).validate()


def test_queries_that_are_not_json_triplets_are_rejected_by_both(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(3, 0, 20), uri).create_scalar_index("j", "INVERTED")
    for query in ("w1", "", "a,str", "a,STR,w1", "a, str,w1", "a,str,w1;", "a,b,str,w1"):
        with pytest.raises(ValueError, match="Invalid triple"):
            lance.dataset(uri).to_table(full_text_query=theirs.MatchQuery(query, "j"))
        with pytest.raises(ValueError, match="JSON query: expected"):
            ld.dataset(uri).to_table(full_text_query=ours.MatchQuery(query, "j"))
