"""Which fragments are compacted together."""

from __future__ import annotations

from typing import Any

import pytest

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.maintenance.options import CompactionOptions, compaction_options
from lance_duck.maintenance.plan import Candidate, fragments_for, plan_groups


def plan(*fragments: Candidate, **options: Any) -> list[list[int]]:
    return [[c.id for c in group] for group in plan_groups(fragments, CompactionOptions(**options))]


def sized(*rows: int) -> list[Candidate]:
    return [Candidate(i, n) for i, n in enumerate(rows)]


def test_small_adjacent_fragments_are_joined_up_to_the_target() -> None:
    assert plan(*sized(*[10] * 12), target_rows_per_fragment=30) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert plan(*sized(*[10] * 12), target_rows_per_fragment=50) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10, 11]]
    assert plan(*sized(*[10] * 12), target_rows_per_fragment=100) == [list(range(12))]


def test_a_large_fragment_separates_groups() -> None:
    assert plan(*sized(100, 50, 2000, 300, 10), target_rows_per_fragment=1000) == [[0, 1], [3, 4]]


def test_a_small_fragment_between_large_ones_is_not_rewritten() -> None:
    assert plan(*sized(100, 50, 2000, 300, 10), target_rows_per_fragment=200) == [[0, 1]]
    assert plan(*sized(100, 50, 2000), target_rows_per_fragment=100) == []


@pytest.mark.parametrize(("deleted", "expected"), [(9, []), (10, []), (11, [[0]])])
def test_a_fragment_is_rewritten_if_more_than_a_tenth_is_deleted(deleted: int, expected: list[list[int]]) -> None:
    assert plan(Candidate(0, 100, deleted), target_rows_per_fragment=50) == expected


def test_deletions_are_kept_if_materialisation_is_disabled() -> None:
    worn = Candidate(0, 100, 90)
    assert plan(worn, target_rows_per_fragment=50, materialize_deletions=False) == []


def test_fragments_with_different_index_coverage_are_not_joined() -> None:
    covered = frozenset({"i"})
    fragments = [Candidate(0, 1), Candidate(1, 1, indices=covered), Candidate(2, 1, indices=covered), Candidate(3, 1)]
    assert plan(*fragments) == [[1, 2]]


def test_excluded_fragments_are_borders() -> None:
    assert plan(*sized(1, 1, 1, 1, 1), excluded_fragment_ids=(2,)) == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"max_source_fragments": 4}, [[0, 1, 2]]),
        ({"max_source_rows": 60}, [[0, 1, 2], [3, 4, 5]]),
        ({"max_source_bytes": 2}, []),
    ],
)
def test_a_run_ends_before_a_limit_is_exceeded(limit: dict[str, int], expected: list[list[int]]) -> None:
    fragments = [Candidate(i, 10, num_bytes=1) for i in range(12)]
    assert plan(*fragments, target_rows_per_fragment=30, **limit) == expected


def test_rows_of_a_group_are_spread_evenly() -> None:
    options = CompactionOptions(target_rows_per_fragment=1000)
    assert [fragments_for(n, options) for n in (0, 10, 1999, 2000, 2160, 5000)] == [1, 1, 1, 2, 2, 5]


def test_caller_options_override_config_and_defaults() -> None:
    config = {
        "lance.compaction.target_rows_per_fragment": "500",
        "lance.compaction.materialize_deletions": "false",
        "other": "x",
    }
    assert compaction_options({"target_rows_per_fragment": 7}, config).target_rows_per_fragment == 7
    assert compaction_options({"batch_size": None}, config) == CompactionOptions(
        target_rows_per_fragment=500, materialize_deletions=False
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"target_rows_per_fragment": 0},
        {"num_threads": -1},
        {"materialize_deletions_threshold": 1.5},
        {"compaction_mode": "fast"},
        {"batch_size": "many"},
        {"no_such": 1},
    ],
)
def test_invalid_options_are_rejected_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        compaction_options(bad)


@pytest.mark.parametrize("options", [{"compaction_mode": "force_binary_copy"}, {"enable_binary_copy_force": True}])
def test_a_forced_binary_copy_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        compaction_options(options)


def test_an_optional_binary_copy_changes_nothing() -> None:
    assert compaction_options({"enable_binary_copy": True, "enable_binary_copy_force": False}) == compaction_options({})


def test_index_remapping_cannot_be_deferred_and_disabled() -> None:
    with pytest.raises(InvalidInputError, match="defer_index_remap"):
        compaction_options({"defer_index_remap": True, "remap_indices": False})


def test_unordered_fragments_are_not_joined() -> None:
    assert plan(Candidate(5, 10), Candidate(3, 10), Candidate(4, 10)) == [[3, 4]]


def test_a_config_value_that_is_not_a_number_is_rejected_with_its_key() -> None:
    with pytest.raises(InvalidInputError, match=r"lance\.compaction\.batch_size"):
        compaction_options({}, {"lance.compaction.batch_size": "x"})
