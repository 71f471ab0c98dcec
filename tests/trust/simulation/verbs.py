"""Concurrent operations on a simulated store: no row is lost or duplicated, and no file is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from concurrency import hammer
from trust.simulation.commits import WEATHERS
from trust.simulation.scheduler import Scheduler
from trust.simulation.service import SimulatedService, Weather

import lance_duck as ld
from lance_duck.errors import CommitConflictError, StoreError

CHANGES = 6
URI = "memory://simulated/t.lance"


def verbs(seed: int, folder: Path) -> Mapping[str, int]:
    """Let writers append, delete, count, upsert and compact during reads and a cleanup."""
    return _against_each_other(seed, ("append", "delete", "count", "upsert"))


def overlays(seed: int, folder: Path) -> Mapping[str, int]:
    """Let writers also count by data overlays."""
    return _against_each_other(seed, ("append", "delete", "count", "upsert", "overlay"))


def _against_each_other(seed: int, names: Sequence[str]) -> Mapping[str, int]:
    rng = Random(seed)
    scheduler = Scheduler(rng)
    service = SimulatedService(rng, scheduler)
    tallies: list[hammer.Tally] = []
    reads = [0]
    with pytest.MonkeyPatch.context() as patch:
        service.install(patch)
        hammer.create(URI, {}, enable_stable_row_ids=rng.random() < 0.5)
        service.weather = rng.choice(WEATHERS)
        what: dict[str, int] = {name: rng.randrange(1, 4) for name in names}
        what["compact"] = 1
        works = [lambda who=who: tallies.append(_write(who, seed, what, rng)) for who in range(rng.randrange(2, 5))]
        scheduler.run([*works, lambda: _read(reads), _clean])
        service.weather = Weather()
        hammer.check(URI, {}, tallies)
    tried = sum((tally.tried for tally in tallies), start=type(tallies[0].tried)())
    return {"changes": sum(tried[name] for name in what), "reads": reads[0], "requests": service.requests}


def _write(who: int, seed: int, what: dict[str, int], rng: Random) -> hammer.Tally:
    tally = hammer.Tally()
    own = Random(seed * 100 + who)
    for turn, name in enumerate(own.choices(list(what), list(what.values()), k=CHANGES)):
        hammer.change(URI, {}, name, who, turn, tally, own)
    return tally


def _read(reads: list[int]) -> None:
    """Read the newest version repeatedly. Its ids are unique."""
    for _ in range(CHANGES):
        try:
            ids: list[Any] = ld.dataset(URI).to_table(columns=["id"])["id"].to_pylist()
        except StoreError:
            continue
        assert len(set(ids)) == len(ids)
        reads[0] += 1


def _clean() -> None:
    """Clean up old versions. The cleanup keeps unreferenced files, because a running commit may use them."""
    for _ in range(2):
        try:
            ld.dataset(URI).cleanup_old_versions(timedelta(days=1))
        except (StoreError, CommitConflictError):
            continue
