"""Rerankers: functions of the user, and the rerankers of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.rerankers import LinearCombinationReranker, MMRReranker, MRRReranker, RRFReranker

QUERY = [1.0, 0.0]
VECTORS = [[1.0, 0.0], [1.0, 0.125], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.25]]


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    vectors = pa.array(VECTORS, pa.list_(pa.float32(), 2))
    texts = ["brown puppy", "a kitten", "puppy", "the dog", "one bird"]
    uri = tmp_path_factory.mktemp("pets") / "pets.lance"
    return ld.write_dataset(pa.table({"id": [1, 2, 3, 4, 5], "vec": vectors, "text": texts}), uri, max_rows_per_file=3)


def ids(found: pa.Table) -> list[int]:
    return found.column("id").to_pylist()


def relevance(found: pa.Table) -> list[float]:
    return found.column("_relevance_score").to_pylist()


def by_id(candidates: pa.Table, _: Any) -> pa.ChunkedArray:
    return candidates.column("id")


def test_a_function_gets_the_candidates_and_the_query(pets: ld.LanceDataset) -> None:
    seen: list[Any] = []

    def rerank(candidates: pa.Table, query: Any) -> list[int]:
        seen.append((candidates.schema.names, ids(candidates), query))
        return [0] * len(candidates)

    pets.search(QUERY, 1, rerank=rerank, columns=["id"])
    pets.search("puppy", 1, "text", rerank=rerank, oversample_factor=1)
    pets.search(QUERY, 1, full_text_query="puppy", rerank=rerank, oversample_factor=1, columns=["id"])
    assert seen == [
        (["id", "_distance", "_rowid"], [1, 2, 5, 3], QUERY),
        (["id", "vec", "text", "_score", "_rowid"], [3], "puppy"),
        (["id", "_distance", "_score", "_hybrid_score", "_rowid"], [1, 3], "puppy"),
    ]


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, pa.array, lambda v: pa.chunked_array([v]), lambda v: np.array(v, np.float32)]
)
def test_scores_order_the_rows_and_ties_keep_the_order_of_the_search(pets: ld.LanceDataset, make: Any) -> None:
    found = pets.search(QUERY, 3, rerank=lambda candidates, _: make([1, 2, 1, 3, 2][: len(candidates)]))
    assert found.schema.names == ["id", "vec", "text", "_distance", "_relevance_score"]
    assert found.schema.field("_relevance_score").type == pa.float32()
    assert ids(found) == [3, 2, 4]
    assert relevance(found) == [3, 2, 2]


def test_a_table_gives_the_rows_and_their_order(pets: ld.LanceDataset) -> None:
    found = pets.search(QUERY, 3, rerank=lambda rows, _: rows.sort_by([("id", "descending")]).slice(0, 2))
    assert (ids(found), relevance(found)) == ([5, 4], [None, None])

    def scored(rows: pa.Table, _: Any) -> pa.RecordBatch:
        return rows.slice(1, 2).append_column("_relevance_score", pa.array([0.5, 0.25])).to_batches()[0]

    found = pets.search(QUERY, 3, columns=["id"], rerank=scored)
    assert (ids(found), relevance(found)) == ([2, 5], [0.5, 0.25])


def test_limits_offsets_filters_and_columns_apply_to_the_reranked_rows(pets: ld.LanceDataset) -> None:
    assert ids(pets.search(QUERY, 4, rerank=by_id, limit=2, offset=1)) == [4, 3]
    assert ids(pets.search(QUERY, rerank=by_id, filter="id < 5").limit(2)) == [4, 3]
    assert ids(pets.search("puppy", 5, rerank=by_id)) == [3, 1]
    columns = {"r": "_relevance_score", "id": "id", "d": "_distance", "twice": "id * 2"}
    found = pets.search(QUERY, 1, columns=columns, rerank=lambda rows, _: rows.column("id"), with_row_id=True)
    assert found.to_pylist() == [{"r": 5.0, "id": 5, "d": 0.0625, "twice": 10, "_rowid": (1 << 32) + 1}]
    plain = pets.search(QUERY, 1, columns=["_rowid", "id"], disable_scoring_autoprojection=True, rerank=by_id)
    assert plain.schema.names == ["_rowid", "id"]
    assert pets.search(QUERY, 2, filter="id > 9", rerank=by_id).num_rows == 0


def test_scanners_and_builders_rerank_too(pets: ld.LanceDataset) -> None:
    near = {"column": "vec", "q": QUERY, "k": 3}
    expected = pets.search(QUERY, 3, rerank=by_id)
    scanner = pets.scanner(nearest=near, rerank=by_id, batch_size=2)
    assert [batch.num_rows for batch in scanner.to_batches()] == [2, 1]
    assert scanner.projected_schema == expected.schema
    assert scanner.to_table() == pets.to_table(nearest=near, rerank=by_id) == expected
    assert scanner.count_rows() == 3
    assert pets.search(QUERY).limit(3).rerank(by_id).to_arrow() == expected
    assert scanner.explain_plan().startswith("LanceRerank: by_id, k 3\n  LanceNearest: ")
    assert "search: 5 nearest" in scanner.explain_plan()
    both = pets.search(QUERY).text("puppy").limit(2)
    assert both.rerank("mrr").to_arrow() == pets.search(QUERY, 2, full_text_query="puppy", rerank="mrr")
    assert both.rerank("rrf").to_arrow() == pets.search(QUERY, 2, full_text_query="puppy", method="rrf")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1.0], "relevance scores: expected 5, one per candidate, found 1"),
        ([[1.0]] * 5, "expected 5, one per candidate, found an array of shape"),
        ([1, 2, float("nan"), 3, 4], "relevance scores: expected finite numbers, found nan at 2"),
        ([1, 2, float("inf"), 3, 4], "found inf at 2"),
        (pa.array([1, 2, None, 3, 4]), "found nan at 2"),
        ([1e300] * 5, "expected finite numbers, found 1e"),
        (["a"] * 5, "relevance scores: expected numbers"),
        (None, "expected numbers, one per candidate, or a table, found NoneType"),
        (7, "expected 5, one per candidate, found an array of shape"),
        (pa.table({"id": [1]}), "the table has no `_rowid`"),
        (pa.table({"_rowid": pa.array([9], pa.uint64())}), "rows of the candidates, found _rowid 9"),
        (pa.table({"_rowid": pa.array([None], pa.uint64())}), "rows of the candidates, found _rowid None"),
        (pa.table({"_rowid": ["x"]}), "found type string"),
        (pa.table({"_rowid": pa.array([0, 0], pa.uint64())}), "each row once, found a row twice"),
        (pa.table({"_rowid": pa.array([0], pa.uint64()), "_relevance_score": ["x"]}), "column _relevance_score"),
    ],
)
def test_results_that_do_not_fit_the_candidates_raise_clear_errors(
    pets: ld.LanceDataset, result: Any, message: str
) -> None:
    with pytest.raises(ld.InvalidInputError, match=message):
        pets.search(QUERY, 2, rerank=lambda _, __: result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rerank": "rff"}, "did you mean 'rrf'"),
        ({"rerank": 3}, "rerank: expected a name, .* found int"),
        ({"rerank": RRFReranker}, r"found the class RRFReranker; call it: RRFReranker\(\)"),
        ({"rerank": "rrf"}, "RRFReranker combines .* found only a vector search; add the other one"),
        ({"rerank": by_id, "order_by": ["id"]}, "order_by is not supported with rerank"),
        ({"rerank": by_id, "alpha": 0.5}, "alpha does not apply with rerank"),
        ({"rerank": by_id, "oversample_factor": 0}, "oversample_factor: expected 1 or more"),
        ({"rerank": MMRReranker(column="text")}, "must be a vector"),
    ],
)
def test_invalid_arguments_raise_clear_errors(pets: ld.LanceDataset, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=message):
        pets.search(QUERY, 2, **options)


def test_rerankers_need_a_search_with_one_query(pets: ld.LanceDataset) -> None:
    with pytest.raises(ld.InvalidInputError, match="query vector: expected one"):
        pets.search([QUERY, QUERY], 2, rerank=by_id)
    with pytest.raises(ld.InvalidInputError, match="found neither"):
        pets.scanner(rerank=by_id)
    with pytest.raises(ld.UnsupportedError, match="rerank is not supported"):
        pets.prepare_search("vec", rerank=by_id)
    with pytest.raises(ld.UnsupportedError, match="rerank is not supported"):
        pets.prepare("id = ?", rerank=by_id)  # type: ignore[call-arg]
    with pytest.raises(ZeroDivisionError):
        pets.search(QUERY, 2, rerank=lambda _, __: 1 / 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RRFReranker(0), "K: expected a number above 0, found 0"),
        (lambda: RRFReranker("a"), "K: expected a number"),  # type: ignore[arg-type]
        (lambda: MRRReranker(0.5, 0.6), r"weight_vector \+ weight_fts: expected a sum of 1, found 1.1"),
        (lambda: MRRReranker(-1, 2), "weight_vector: expected 0 to 1, found -1"),
        (lambda: LinearCombinationReranker(2), "weight: expected 0 to 1, found 2"),
        (lambda: LinearCombinationReranker(fill=float("inf")), "fill: expected a finite number, found inf"),
        (lambda: MMRReranker(1.5), "lambda_mult: expected 0 to 1, found 1.5"),
        (lambda: MMRReranker(column=3), "column: expected a name"),  # type: ignore[arg-type]
    ],
)
def test_parameters_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ld.InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("reranker", "expected"),
    [  # nearest: 1, 2, 5, 3, 4; matching: 3 ("puppy" is shorter), 1
        (RRFReranker(), {1: 1 / 61 + 1 / 62, 3: 1 / 64 + 1 / 61, 2: 1 / 62, 5: 1 / 63, 4: 1 / 65}),
        (RRFReranker(1), {1: 1 / 2 + 1 / 3, 3: 1 / 5 + 1 / 2, 2: 1 / 3, 5: 1 / 4, 4: 1 / 6}),
        (MRRReranker(), {1: 0.75, 3: 0.625, 2: 0.25, 5: 1 / 6, 4: 0.1}),
        (MRRReranker(1, 0), {1: 1, 2: 1 / 2, 5: 1 / 3, 3: 1 / 4, 4: 1 / 5}),
        (LinearCombinationReranker(0.5), {1: 0.5, 3: 0.75, 2: 0.5 * (1 - 1 / 256), 5: 0.5 * (1 - 1 / 64), 4: 0.0}),
        (LinearCombinationReranker(0.5, 0.5), {1: 0.5, 3: 0.75, 2: 0.75 - 1 / 512, 5: 0.75 - 1 / 128, 4: 0.25}),
    ],
)
def test_fusion_adds_what_both_searches_say(pets: ld.LanceDataset, reranker: Any, expected: dict[int, float]) -> None:
    found = pets.search(QUERY, 5, full_text_query="puppy", rerank=reranker)
    assert dict(zip(ids(found), relevance(found), strict=True)) == pytest.approx(expected)
    assert relevance(found) == sorted(relevance(found), reverse=True)


def test_mmr_prefers_rows_that_differ(pets: ld.LanceDataset) -> None:
    near = pets.search(QUERY, 3, rerank=MMRReranker(1))
    assert ids(near) == [1, 2, 5]
    assert relevance(near) == pytest.approx([1, 1 / np.hypot(1, 0.125), 1 / np.hypot(1, 0.25)])
    found = pets.search(QUERY, 3, rerank=MMRReranker(0.4))
    assert ids(found) == [1, 4, 3]
    assert relevance(found) == pytest.approx([0.4, 0.2, 0])
    words = pets.search("puppy", 2, rerank=MMRReranker(0.5))
    assert (ids(words), relevance(words)) == ([3, 1], [0.5, 0])
    assert ids(pets.search(QUERY, 2, full_text_query="puppy", rerank="mmr")) == [3, 1]


def test_mmr_equals_a_plain_reference(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(60, 4)).astype(np.float32)
    rows: list[Any] = [
        None if place == 7 else [0.0] * 4 if place == 8 else v.tolist() for place, v in enumerate(vectors)
    ]
    ds = ld.write_dataset(pa.table({"id": range(60), "v": pa.array(rows, pa.list_(pa.float16(), 4))}), tmp_path / "t")
    query = rng.normal(size=4).astype(np.float32)
    found = ds.search(query, 10, rerank=MMRReranker(0.6), oversample_factor=6)

    stored = {i: np.zeros(4) if row is None else np.float64(np.float16(row)) for i, row in enumerate(rows) if row}

    def cosine(a: Any, b: Any) -> float:
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        return float(a @ b / lengths) if lengths else 0.0

    chosen: list[int] = []
    while len(chosen) < 10:
        values = {
            i: 0.6 * cosine(v, query) - 0.4 * max((cosine(v, stored[c]) for c in chosen), default=0.0)
            for i, v in stored.items()
            if i not in chosen
        }
        chosen.append(max(values, key=values.__getitem__))
    assert ids(found) == chosen


class _LikeLanceDb:
    """Has the methods of LanceDB's rerankers."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
        self.seen.append((query, vector_results.to_pylist(), fts_results.to_pylist()))
        return vector_results

    def rerank_vector(self, query: Any, vector_results: pa.Table) -> pa.Table:
        self.seen.append(query)
        return vector_results.slice(1)

    rerank_fts = rerank_vector


def test_objects_with_the_methods_of_lancedb_get_scaled_scores(pets: ld.LanceDataset) -> None:
    reranker = _LikeLanceDb()
    found = pets.search(QUERY, 1, full_text_query="puppy", rerank=reranker, columns=[], oversample_factor=2)
    assert found.column("_distance").to_pylist() == [0.0]
    ((query, near, match),) = reranker.seen
    assert query == "puppy"
    assert [(row["_rowid"], row["_distance"]) for row in near] == [(0, 0.0), (1, 1.0)]
    assert [(row["_rowid"], row["_score"]) for row in match] == [(2, 1.0), (0, 0.0)]
    assert ids(pets.search(QUERY, 1, rerank=reranker)) == [2]
    assert ids(pets.search("puppy", 1, rerank=reranker)) == [1]


class OnlyWords:
    def rerank_hybrid(self, *_: Any) -> None: ...

    def rerank_fts(self, *_: Any) -> None: ...


@pytest.mark.parametrize(
    ("rerank", "message"),
    [
        (lambda c, _: c.append_column("_rowid", c["_rowid"]), "one column _rowid"),
        (lambda c, _: c.append_column("_relevance_score", c["id"]).append_column("_relevance_score", c["id"]), "one"),
        (lambda c, _: [1j] * len(c), "relevance scores.*complex"),
        (lambda c, _: np.zeros(len(c), "datetime64[s]"), "relevance scores.*datetime"),
        (OnlyWords(), "rerank_vector, found OnlyWords"),
    ],
)
def test_results_that_are_not_a_ranking_are_refused(pets: ld.LanceDataset, rerank: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        pets.search(QUERY, 1, rerank=rerank)
