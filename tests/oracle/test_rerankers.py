"""Rerankers give the scores of LanceDB's rerankers with the same names, and LanceDB's own objects also work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb import rerankers as theirs
from lancedb.index import FTS

import lance_duck as ld
from lance_duck import rerankers as ours

QUERY = np.array([0.5, -0.25, 0.125, 1.0], np.float32)
PAIRS = [
    (ours.RRFReranker(), theirs.RRFReranker()),
    (ours.RRFReranker(K=3), theirs.RRFReranker(K=3)),
    (ours.MRRReranker(0.3, 0.7), theirs.MRRReranker(0.3, 0.7)),
    (ours.LinearCombinationReranker(), theirs.LinearCombinationReranker()),
    (ours.LinearCombinationReranker(0.25, 0.5), theirs.LinearCombinationReranker(0.25, 0.5)),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ld.LanceDataset]:
    folder = tmp_path_factory.mktemp("db")
    rng = np.random.default_rng(3)
    texts = ["duck" * (row < 20) + " lake" * (row % 20 + 1) for row in rng.permutation(80).tolist()]  # no equal scores
    vectors = pa.array(rng.normal(size=(80, 4)).astype(np.float32).tolist(), pa.list_(pa.float32(), 4))
    made = lancedb.connect(folder).create_table("t", pa.table({"id": range(80), "text": texts, "v": vectors}))
    made.create_index("text", config=FTS())
    return made, ld.dataset(folder / "t.lance")


def by_id(found: pa.Table) -> dict[int, float]:
    return dict(zip(found.column("id").to_pylist(), found.column("_relevance_score").to_pylist(), strict=True))


@pytest.mark.parametrize(("mine", "other"), PAIRS, ids=str)
def test_scores_equal_lancedbs(table: tuple[Any, ld.LanceDataset], mine: Any, other: Any) -> None:
    db, ds = table
    search = db.search(query_type="hybrid").vector(QUERY).text("duck").rerank(other)
    expected = by_id(search.limit(25).select(["id"]).to_arrow())
    least = min(expected.values()) + 1e-4  # rows with the least score may be others
    expected = {row: score for row, score in expected.items() if score > least}
    for reranker in (mine, other):
        found = ds.search(QUERY, 25, full_text_query="duck", rerank=reranker, oversample_factor=1, columns=["id"])
        assert found.num_rows == 25
        scores = {row: score for row, score in by_id(found).items() if score > least}
        assert scores == pytest.approx(expected, abs=1e-5)


def test_a_class_derived_from_lancedbs_reranker_ranks_one_search(tmp_path: Path) -> None:
    class ByLength(theirs.Reranker):
        def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
            raise NotImplementedError

        def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table:
            lengths = pa.compute.utf8_length(fts_results["text"]).cast(pa.float32())
            return fts_results.append_column("_relevance_score", lengths).sort_by([("_relevance_score", "descending")])

    db = lancedb.connect(tmp_path)
    made = db.create_table("t", [{"text": "duck"}, {"text": "duck lake"}, {"text": "duck moon tree"}])
    made.create_index("text", config=FTS())
    expected = made.search("duck", query_type="fts").rerank(ByLength()).limit(3).select(["text", "_score"]).to_list()
    found = ld.dataset(tmp_path / "t.lance").search("duck", 3, rerank=ByLength()).to_pylist()
    pairs = [("duck moon tree", 14.0), ("duck lake", 9.0), ("duck", 4.0)]
    for rows in (found, expected):
        assert [(row["text"], row["_relevance_score"]) for row in rows] == pairs
