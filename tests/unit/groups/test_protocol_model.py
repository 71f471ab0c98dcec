"""The protocol of the commit log keeps its guarantees in every order of steps: see `protocol_model`.

All processes at once have too many states for a quick test, so the search is split: one writer with a helper, two
foreign versions, a crash and a reader; two writers with a helper, a crash and a reader; two writers with two foreign
versions; three tables; lost answers; helpers that see different conflicts; removed versions. Slow tests have more at
once. Table 0 is strict unless the name of the setup says something else.

Each rule that protects a guarantee is then switched off, and a search must find steps that break the guarantee.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from unit.groups.protocol_model import Explored, explore
from unit.groups.protocol_states import BrokenError, Rules, Setup

ONE = Setup(helpers=1, foreign=2, crashes=1)
TWO = Setup(groups=((0, 1), (0, 1)), conflicts=(0, 1, 2, 3))
THREE_TABLES = Setup(groups=((0, 1, 2),), tables=3, helpers=1, foreign=2, crashes=1)
SHARED_TABLE = Setup(groups=((0, 1), (1, 2)), tables=3, foreign=1, conflicts=(0,))
LOST = Setup(helpers=1, foreign=2, crashes=1, lost=2)
DISPUTED = replace(ONE, conflicts=(0,), disputes=(0, 1))
CLEANED = replace(ONE, cleanups=1)
CLEANED_EARLY = replace(CLEANED, cleans_unfinished=True)

SETUPS = {
    "one writer": ONE,
    "one writer, no strict table": replace(ONE, strict=frozenset()),
    "one writer, only strict tables": replace(ONE, strict=frozenset({0, 1})),
    "one writer, two helpers": replace(ONE, helpers=2),
    "one writer, a reader": replace(ONE, readers=1),
    "one writer, a reader that cannot write": replace(ONE, watchers=1),
    "two writers, a reader": replace(TWO, helpers=1, crashes=1, readers=1),
    "two writers, a reader that cannot write": replace(TWO, crashes=1, watchers=1),
    "two writers, a foreign version, a reader": replace(TWO, foreign=1, readers=1),
    "two writers, a foreign version, a helper": replace(TWO, foreign=1, helpers=1, crashes=1),
    "two writers, foreign versions": replace(TWO, foreign=2),
    "three tables": THREE_TABLES,
    "three tables, two strict": replace(THREE_TABLES, strict=frozenset({0, 1})),
    "groups with one common table, a reader": replace(SHARED_TABLE, readers=1),
    "groups with one common table, a reader that cannot write": replace(SHARED_TABLE, watchers=1),
    "lost answers": LOST,
    "lost answers, two writers": replace(TWO, foreign=1, crashes=1, lost=2),
    "disputed conflicts": DISPUTED,
    "disputed conflicts, a reader": replace(DISPUTED, foreign=1, readers=1),
    "removed versions": CLEANED,
    "versions removed before the end": CLEANED_EARLY,
}
LARGE = {
    "disputed conflicts, foreign versions, a reader": replace(DISPUTED, readers=1),
    "two writers, foreign versions, a crash": replace(TWO, foreign=2, crashes=1),
    "two writers, foreign versions, a helper": replace(TWO, foreign=2, helpers=1, crashes=1),
    "two writers, a foreign version, a reader, a crash": replace(TWO, foreign=1, crashes=1, watchers=1),
    "three tables, a reader": replace(THREE_TABLES, readers=1, crashes=0),
    "disputed conflicts, two writers": replace(
        TWO, foreign=1, disputes=(0, 1, 2, 3), conflicts=(0,), helpers=1, crashes=1
    ),
    "two removals": replace(CLEANED_EARLY, cleanups=2),
}
PLAIN = Rules(fences=False, fences_end=False, guard=False, one_end=False, gaps=False, before_group=False)
"""Without the rules for helpers that see different conflicts, for removed versions and for G7."""

BROKEN = [
    ("conditional_put", ONE, "G5"),
    ("undo_newest_only", ONE, "G5"),
    ("finish_first", replace(TWO, helpers=1, crashes=1), "G6"),
    ("finish_first", Setup(readers=1), "G3"),
    ("stage_after_finish", replace(TWO, foreign=1), "G4"),
    ("own_entry", LOST, "G2"),
    ("table_before_log", Setup(readers=1), "G3"),
    ("table_before_log", Setup(watchers=1), "G3"),
    ("first_entry", replace(TWO, watchers=1), "G3"),
    ("before_group", Setup(foreign=1, readers=1), "G7"),
    ("fences", replace(TWO, foreign=1, watchers=1), "G3"),
    ("fences", DISPUTED, "G1"),
    ("one_end", DISPUTED, "G1"),
    ("guard fences_end", DISPUTED, "G2"),
    ("guard gaps", CLEANED, "G2"),
    ("gaps", CLEANED_EARLY, "G2"),
]


@cache
def explored(setup: Setup) -> Explored:
    """Return what `explore` finds. The error of a broken guarantee shows the steps that lead there."""
    return explore(setup)


@pytest.mark.parametrize("name", [*SETUPS, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_the_guarantees_hold_in_every_order_of_steps(name: str) -> None:
    assert "published" in explored({**SETUPS, **LARGE}[name]).outcomes


def test_groups_end_published_undone_or_partly() -> None:
    assert explored(ONE).outcomes == {"published", "undone", "partly"}


def test_without_foreign_versions_every_group_is_published() -> None:
    assert explored(replace(TWO, helpers=1, crashes=1)).outcomes == {"published"}


def test_one_foreign_version_never_leaves_a_group_in_part() -> None:
    assert explored(replace(ONE, foreign=1)).outcomes == {"published", "undone"}


@pytest.mark.parametrize(("rules", "setup", "guarantee"), BROKEN, ids=[f"{rules}-{g}" for rules, _, g in BROKEN])
def test_every_rule_is_needed(rules: str, setup: Setup, guarantee: str) -> None:
    weaker = replace(Rules(), **dict.fromkeys(rules.split(), False))
    explored(setup)
    with pytest.raises(BrokenError, match=f"^{guarantee}: "):
        explore(replace(setup, rules=weaker))


@pytest.mark.parametrize("setup", [ONE, replace(TWO, foreign=1, crashes=1), replace(ONE, helpers=0, watchers=1)])
def test_helpers_that_see_the_same_conflicts_decide_the_same_without_fences(setup: Setup) -> None:
    assert "published" in explored(replace(setup, rules=PLAIN)).outcomes


@pytest.mark.parametrize("setup", [ONE, replace(TWO, foreign=1), replace(LOST, foreign=1), Setup(foreign=2, readers=1)])
def test_settled_steps_may_be_taken_at_once(setup: Setup) -> None:
    assert explored(setup).last == explored(replace(setup, every_order=True)).last
