from __future__ import annotations

import numpy as np
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.scan.hybrid.mix import Candidates, HybridMethod, HybridRanking


def candidates(rows: dict[int, float]) -> Candidates:
    return Candidates(np.array([*rows], np.uint64), np.array([*rows.values()], np.float32))


NEAREST = candidates({7: 1.0, 3: 2.0, 9: 5.0})
MATCHING = candidates({9: 4.0, 5: 3.0, 3: 2.0})


def listed(ranking: HybridRanking) -> list[tuple[int, int, float]]:
    return list(zip(ranking.nearest.tolist(), ranking.matching.tolist(), ranking.scores.tolist(), strict=True))


def test_linear_mixing_scales_both_scores_and_counts_missing_ones_as_zero() -> None:
    mixed = HybridMethod("linear", 0.75).mix(NEAREST, MATCHING, 10)
    assert listed(mixed) == [(0, -1, 0.75), (1, 2, 0.5625), (2, 0, 0.25), (-1, 1, 0.125)]


def test_equal_scores_are_ordered_by_row_id() -> None:
    mixed = HybridMethod("linear", 0.5).mix(NEAREST, MATCHING, 2)
    assert listed(mixed) == [(0, -1, 0.5), (2, 0, 0.5)]  # rows 7 and 9


@pytest.mark.parametrize(("alpha", "scores"), [(-3.0, [1.0, 0.5, 0.0, 0.0]), (8.0, [1.0, 0.75, 0.0, 0.0])])
def test_an_out_of_range_weight_is_clamped(alpha: float, scores: list[float]) -> None:
    assert HybridMethod("linear", alpha).mix(NEAREST, MATCHING, 10).scores.tolist() == scores


def test_equal_candidates_get_a_score_of_one_half() -> None:
    mixed = HybridMethod().mix(candidates({1: 3.0, 2: 3.0}), candidates({2: 1.5}), 10)
    assert listed(mixed) == [(1, 0, 0.5), (0, -1, 0.25)]


def test_infinite_distances_are_the_farthest() -> None:
    mixed = HybridMethod("linear", 1.0).mix(candidates({1: 0.0, 2: np.inf}), candidates({}), 10)
    assert listed(mixed) == [(0, -1, 1.0), (1, -1, 0.0)]


def test_reciprocal_ranks_add_up() -> None:
    mixed = HybridMethod("rrf").mix(NEAREST, MATCHING, 10)
    expected = [(2, 0, 1 / 62 + 1 / 60), (1, 2, 1 / 61 + 1 / 62), (0, -1, 1 / 60), (-1, 1, 1 / 61)]
    assert listed(mixed) == [(near, match, float(np.float32(score))) for near, match, score in expected]


@pytest.mark.parametrize("method", ["linear", "rrf"])
def test_empty_searches_mix_to_an_empty_result(method: str) -> None:
    assert listed(HybridMethod(method).mix(candidates({}), candidates({}), 3)) == []
    assert len(HybridMethod(method).mix(candidates({}), MATCHING, 3).scores) == 3


def test_unknown_methods_and_weights_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="'linear' or 'rrf'"):
        HybridMethod("liner")
    with pytest.raises(InvalidInputError, match="alpha"):
        HybridMethod("linear", float("nan"))
