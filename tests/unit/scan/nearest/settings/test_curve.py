"""The choice among settings that were measured."""

from __future__ import annotations

import pytest

from lance_duck.scan.nearest.settings.curve import Curve, MeasuredSetting, Setting, choose, words
from lance_duck.scan.nearest.settings.segment_curves import k_measured, shares_measured

CURVE = Curve.of(
    10,
    1.0,
    100,
    [
        MeasuredSetting(Setting(40, None, 100), 0.99, 0.005, 90.0),
        MeasuredSetting(Setting(5), 0.7, 0.02, 10.0),
        MeasuredSetting(Setting(9), 0.6, 0.02, 20.0),
        MeasuredSetting(Setting(20), 0.955, 0.01, 40.0),
        MeasuredSetting(Setting(30), 0.97, 0.01, 60.0),
    ],
)
FEW = Curve.of(10, 0.25, 100, [MeasuredSetting(Setting(60, None, 20), 1.0, 0.0, 1.0)])


def test_dominated_settings_are_dropped() -> None:
    assert [each.setting.nprobes for each in CURVE.measured] == [5, 20, 30, 40]


@pytest.mark.parametrize(("recall", "nprobes"), [(0.5, 5), (0.69, 20), (0.94, 20), (0.95, 30), (0.98, 40)])
def test_the_cheapest_setting_is_chosen_that_surely_reaches_the_recall(recall: float, nprobes: int) -> None:
    found = CURVE.choose(recall)
    assert found is not None
    assert found.setting.nprobes == nprobes


def test_no_setting_promises_more_than_was_measured() -> None:
    assert CURVE.choose(0.99) is None
    assert Curve.of(10, 1.0, 100, [MeasuredSetting(Setting(1), 1.0, 0.0, 1.0)]).choose(1.0) is None
    assert choose([CURVE, FEW], 0.99) is None
    assert words([CURVE], 0.99, 10) == (
        "target recall 0.99: rows are compared one by one; at most 0.990 measured on 100 queries, k 10, in this process"
    )


def test_settings_between_two_measured_shares_use_the_safer_one() -> None:
    assert choose([CURVE, FEW], 0.98) == Setting(60, None, 100)
    assert choose([CURVE, FEW], 0.9) == Setting(60, None, 20)
    assert words([CURVE, FEW], 0.9, 5) == (
        "target recall 0.9: nprobes 60, refine_factor 4; 0.955 measured on 100 queries, k 10, "
        "in this process; 1.000 measured on 100 queries, k 10, 25.0% of the rows, in this process"
    )


def test_the_requested_refine_factor_is_a_minimum() -> None:
    assert choose([CURVE], 0.9, 10) == Setting(20, None, 10)
    assert choose([CURVE, FEW], 0.9, 10) == Setting(60, None, 20)
    assert words([CURVE], 0.9, 3, 10).startswith("target recall 0.9: nprobes 20, refine_factor 4;")


@pytest.mark.parametrize(("k", "measured"), [(1, 10), (3, 10), (10, 10), (11, 20), (51, 100), (5001, 10000)])
def test_settings_are_measured_for_at_least_k_neighbours(k: int, measured: int) -> None:
    assert k_measured(k) == measured


@pytest.mark.parametrize(
    ("share", "measured"),
    [(1.0, [1.0]), (0.95, [1.0]), (0.5, [1.0, 0.25]), (0.25, [0.25]), (0.1, [0.25, 0.05]), (0.001, [0.05, 0.005])],
)
def test_settings_are_measured_for_the_surrounding_shares(share: float, measured: list[float]) -> None:
    assert shares_measured(share) == measured
