"""Vectors and words in one search, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld

ORIGIN = [0.0, 0.0]
TEXTS = ["a puppy", "a kitten", "puppy", "the dog", "one bird"]


@pytest.fixture(scope="module", params=["addresses", "stable row ids"])
def pets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Five rows at distances 0, 2, 8, 18, 32; the first and third have the word."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i // 2) for i in range(10)], pa.float32()), 2)
    table = pa.table({"id": [1, 2, 3, 4, 5], "vec": vectors, "text": TEXTS})
    uri = tmp_path_factory.mktemp("pets") / "pets.lance"
    return ld.write_dataset(table, uri, enable_stable_row_ids=request.param == "stable row ids", max_rows_per_file=3)


def nearest(**options: Any) -> dict[str, Any]:
    return {"column": "vec", "q": ORIGIN, **options}


def ids(found: pa.Table) -> list[int]:
    return found.column("id").to_pylist()


def test_rows_have_both_scores_and_a_hybrid_score(pets: ld.LanceDataset) -> None:
    found = pets.search(ORIGIN, full_text_query="puppy", k=4)
    assert found.schema.names == ["id", "vec", "text", "_distance", "_score", "_hybrid_score"]
    assert [str(found.schema.field(name).type) for name in found.schema.names[3:]] == ["float"] * 3
    assert ids(found) == [1, 3, 2, 4]
    assert found.column("_distance").to_pylist() == [0.0, 8.0, 2.0, 18.0]
    words = pets.search("puppy").column("_score").to_pylist()
    assert found.column("_score").to_pylist() == [*words, None, None]
    assert found.column("_hybrid_score").to_pylist() == [0.75, 0.625, 0.46875, 0.21875]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"k": 3}, [1, 3, 2]),
        ({"k": 2, "alpha": 1.0}, [1, 2]),
        ({"k": 2, "alpha": 0}, [1, 3]),
        ({"k": 2, "method": "rrf"}, [1, 3]),
        ({"method": "rrf", "filter": "id > 2"}, [3, 4, 5]),
        ({"k": 1, "filter": "id > 2", "prefilter": False, "oversample_factor": 2}, [3]),
        ({"limit": 2, "offset": 1}, [3, 2]),
        ({"k": 4, "limit": 1, "offset": 1}, [3]),
        ({"k": 3, "order_by": ["id"]}, [1, 2, 3]),
        ({"fragments": [1]}, [4, 5]),
    ],
)
def test_method_weights_filters_and_limits_choose_the_rows(
    pets: ld.LanceDataset, options: dict[str, Any], expected: list[int]
) -> None:
    assert ids(pets.search(ORIGIN, full_text_query="puppy", **options)) == expected


def test_all_search_apis_return_the_same_rows(pets: ld.LanceDataset) -> None:
    found = pets.search(ORIGIN, full_text_query={"query": "puppy", "columns": ["text"]}, k=3, column="vec")
    assert pets.search("puppy", nearest=nearest(), k=3).equals(found)  # type: ignore[call-arg]
    assert pets.to_table(nearest=nearest(k=3), full_text_query="puppy").equals(found)
    scanner = pets.scanner(nearest=nearest(), full_text_query="puppy", limit=3, batch_size=2)
    assert [batch.num_rows for batch in scanner.to_batches()] == [2, 1]
    assert scanner.to_table().equals(found)
    assert scanner.count_rows() == 3
    assert not scanner.is_batch


def test_expressions_and_hidden_columns_combine_with_scores(pets: ld.LanceDataset) -> None:
    columns = {"double": "_hybrid_score * 2", "id": "id"}
    found = pets.search(ORIGIN, full_text_query="puppy", k=1, columns=columns, with_row_id=True)
    assert found.schema.names == ["double", "id", "_distance", "_score", "_hybrid_score", "_rowid"]
    assert found.select(["double", "id", "_rowid"]).to_pylist() == [{"double": 1.5, "id": 1, "_rowid": 0}]


def test_a_plan_describes_both_searches(pets: ld.LanceDataset) -> None:
    plan = pets.scanner(nearest=nearest(), full_text_query="puppy", hybrid={"alpha": 0.25}, limit=3).explain_plan()
    assert plan.startswith("LanceHybrid: method linear, alpha 0.25, k 3\n  candidates by vectors:\n    LanceNearest")
    assert "  candidates by words:\n    LanceFullText" in plan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"full_text_query": "puppy", "method": "sum"}, "'linear' or 'rrf', found sum"),
        ({"full_text_query": "puppy", "method": 3}, "method: expected a string"),
        ({"full_text_query": "puppy", "alpha": "half"}, "alpha: expected a number"),
        ({"full_text_query": "puppy", "alpha": float("nan")}, "found NaN"),
        ({"full_text_query": "puppy", "oversample_factor": 0}, "oversample_factor: expected 1 or more"),
        ({"full_text_query": "puppy", "k": 0}, "k: expected 1 or more"),
        ({"full_text_query": "puppy", "hybrid": {"alfa": 1}}, "did you mean 'alpha'"),
        ({"full_text_query": "puppy", "blob_handling": "all_binary"}, "blob_handling is not supported"),
        ({"method": "rrf"}, "both nearest and full_text_query"),
    ],
)
def test_invalid_arguments_raise_clear_errors(pets: ld.LanceDataset, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=message):
        pets.search(ORIGIN, **options)


def test_a_hybrid_search_accepts_one_vector_and_one_text_query(pets: ld.LanceDataset) -> None:
    with pytest.raises(ld.LanceDuckError, match="query vector: expected one"):
        pets.search([ORIGIN, ORIGIN], full_text_query="puppy")
    with pytest.raises(ld.LanceDuckError, match="full_text_query: expected a query vector with it"):
        pets.search("puppy", full_text_query="puppy")


def test_a_column_named_like_a_score_is_rejected(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(ORIGIN, pa.float32()), 2)
    table = pa.table({"vec": vectors, "text": ["puppy"], "_hybrid_score": [1]})
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    with pytest.raises(ld.LanceDuckError, match="with column '_hybrid_score'"):
        dataset.search(ORIGIN, full_text_query="puppy")
