"""Score filters: `_score > 1` together with a full-text query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld

ORIGIN = [0.0, 0.0]
TEXTS = ["duck", "duck lake", "duck lake tree", "goose", "duck goose lake tree"]


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Texts with the word, of 1, 2, 3 and 4 words: the scores of ids 1, 2, 3, 5 descend."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i // 2) for i in range(10)], pa.float32()), 2)
    table = pa.table({"id": [1, 2, 3, 4, 5], "vec": vectors, "text": TEXTS})
    return ld.write_dataset(table, tmp_path_factory.mktemp("birds") / "t.lance", max_rows_per_file=2)


@pytest.fixture(scope="module")
def scores(birds: ld.LanceDataset) -> list[float]:
    """Just less than the scores, best first."""
    found = birds.search("duck")
    assert found.column("id").to_pylist() == [1, 2, 3, 5]
    return [score - 0.001 for score in found.column("_score").to_pylist()]


@pytest.mark.parametrize(
    ("condition", "options", "expected"),
    [
        ("_score < {1}", {}, [3, 5]),
        ("_score < {1}", {"limit": 1}, [3]),
        ("_score < {1}", {"limit": 2, "offset": 1}, [5]),
        ("_score < {1}", {"limit": 3, "prefilter": False}, [3]),
        ("_SCORE >= {1} AND id > 1", {"limit": 1}, [2]),
        ("_score >= {0} OR id = 5", {}, [1, 5]),
        ("_score > {0} + 1", {}, []),
        ("_score < {1} AND _rowaddr < 4294967297", {}, [3]),
        ("_score < {1}", {"order_by": ["id"], "limit": 1}, [3]),
    ],
)
def test_a_score_filter_applies_to_all_matches_or_to_the_best(
    birds: ld.LanceDataset, scores: list[float], condition: str, options: dict[str, Any], expected: list[int]
) -> None:
    text = condition.format(*scores)
    found = birds.to_table(full_text_query="duck", filter=text, columns=["id"], **options)
    assert found.column("id").to_pylist() == expected
    assert birds.count_rows(full_text_query="duck", filter=text, **options) == len(expected)
    batches = birds.to_batches(full_text_query="duck", filter=text, columns=["id"], batch_size=1, **options)
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == expected


def test_score_filters_accept_parameters(birds: ld.LanceDataset, scores: list[float]) -> None:
    for given in ({"filter": "_score < ?", "parameters": [scores[1]]}, {"filter": ("_score < ?", [scores[1]])}):
        assert birds.search("duck", columns=["id"], **given).column("id").to_pylist() == [3, 5]  # type: ignore[arg-type]


def test_a_hybrid_search_can_be_filtered_by_each_score(birds: ld.LanceDataset) -> None:
    text = "_distance > 0 AND _score IS NULL AND _hybrid_score >= 0"
    assert birds.search(ORIGIN, full_text_query="duck", filter=text).column("id").to_pylist() == [4]


def test_a_plan_names_the_filter(birds: ld.LanceDataset) -> None:
    plan = birds.scanner(full_text_query="duck", filter="_score > 1").explain_plan()
    assert plan.endswith("  filter on scores: _score > 1.0\n")


@pytest.mark.parametrize("condition", ["_score > 'x' AND", "_score > no_column", "_score"])
def test_invalid_conditions_are_rejected(birds: ld.LanceDataset, condition: str) -> None:
    with pytest.raises(ld.LanceDuckError, match="bad filter"):
        birds.scanner(full_text_query="duck", filter=condition)


def test_a_string_that_mentions_a_score_is_an_ordinary_filter(birds: ld.LanceDataset) -> None:
    found = birds.search("duck", filter="text <> '_score' AND id < 3")
    assert found.column("id").to_pylist() == [1, 2]
