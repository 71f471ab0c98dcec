"""Tables that lance_duck and pylance change alternately, with queries after every change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import seed as with_seed
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from oracle import test_index_answers, test_text_life, test_vector_life
from oracle.cases import Cases
from trust import variants
from trust.peers import check_with_pylance

import lance_duck as ld

TEXT_LIVES, TEXT_STEPS = 4, 8
ASKED = 30
"""Number of filters after each change. They take about as long as the change."""


def predicates(seed: int, folder: Path) -> Mapping[str, int]:
    """Compare random filters on a table with scalar indexes."""
    cases = Cases()
    return _settled(cases, test_index_answers.live(seed, folder, cases, ASKED), "filters")


def predicates_of_old_files(seed: int, folder: Path) -> Mapping[str, int]:
    """Compare random filters on a table of file version 0.1, until a compaction converts it to 2.2."""
    cases = Cases()
    life = test_index_answers.live(seed, folder, cases, ASKED, variants.OldLife, variants.OLD_CHANGES)
    return _settled(cases, life, "filters")


def predicates_under_overlays(seed: int, folder: Path) -> Mapping[str, int]:
    """Compare random filters on a table with data overlays from both libraries."""
    cases = Cases()
    life = test_index_answers.live(seed, folder, cases, ASKED, changes=variants.OVERLAYING_CHANGES)
    return _settled(cases, life, "filters")


def vectors(seed: int, folder: Path) -> Mapping[str, int]:
    """Compare vector searches with exact distances."""
    cases = Cases()
    return _settled(cases, test_vector_life.live(seed, folder, cases), "searches")


def texts(seed: int, folder: Path) -> Mapping[str, int]:
    """Compare full-text searches with the rows of some tables."""
    asked = 0

    class CountedTextLife(test_text_life.TextLife):
        def found(self, query: Any, **options: Any) -> dict[int, float]:
            nonlocal asked
            asked += 1
            return super().found(query, **options)

        def teardown(self) -> None:
            try:
                check_with_pylance(self.uri)
            finally:
                super().teardown()

    run_state_machine_as_test(
        with_seed(seed)(CountedTextLife),
        settings=settings(max_examples=TEXT_LIVES, stateful_step_count=TEXT_STEPS, deadline=None, database=None),
    )
    return {"searches": asked}


def _settled(cases: Cases, life: Any, name: str) -> Mapping[str, int]:
    cases.settle()
    rows = check_with_pylance(life.path)
    assert rows == ld.dataset(life.path).count_rows()
    return {name: cases.count, "changes": len(life.said) - 1}
