"""Faults that are planted in the package or the store are found by the simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trust.simulation.commits import commits
from trust.simulation.service import SimulatedService
from trust.simulation.verbs import verbs

from lance_duck.commit import committer, conflicts


def found(most: int = 12) -> bool:
    """Return whether one of the first trials fails."""
    try:
        for seed in range(most):
            commits(seed, Path())
    except AssertionError:
        return True
    return False


def test_the_simulation_is_reproducible_by_seed() -> None:
    first = commits(3, Path())
    assert commits(3, Path()) == first
    assert first["commits"] > 40
    assert first != commits(4, Path())


def test_the_simulation_finds_a_store_without_conditional_put(monkeypatch: pytest.MonkeyPatch) -> None:
    put = SimulatedService._put
    monkeypatch.setattr(SimulatedService, "_put", lambda self, key, data, is_new=False: put(self, key, data))
    assert found()


def test_the_simulation_finds_a_commit_that_does_not_recognise_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(self: Any, error: Exception, cause: Exception | None = None) -> Any:
        raise error

    monkeypatch.setattr(committer.CommitAttempts, "own_or", raise_it)
    catch_up = committer.CommitAttempts.catch_up
    monkeypatch.setattr(committer.CommitAttempts, "catch_up", lambda self: (catch_up(self)[0], None))
    assert found()


def test_the_simulation_finds_a_skipped_conflict_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert committer.check_conflict is conflicts.check_conflict
    monkeypatch.setattr(committer, "check_conflict", lambda *_: None)
    assert found()


def test_the_simulation_loses_no_changes() -> None:
    assert verbs(0, Path())["changes"] > 5
