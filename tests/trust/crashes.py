"""Interrupt operations: kill processes, cut the power, let stores fail."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from concurrency import crashing
from concurrency.crashing import fresh, opened, write_files
from concurrency.test_index_crash import strays
from support.faults import Crash, Do, Faults, Plan, answer_twice, fail_at, fail_from, lose_answer, stop_at
from support.power import PowerCut
from trust.jobs import FAMILIES, VARIANTS, Course, Job, check_answers, course, newest, refs
from trust.peers import check_with_pylance

from lance_duck.errors import StoreError

SECONDS = 600
"""Time limit of a child process."""
TIMES = 5
"""Number of interruptions in one trial."""

PLANS: dict[str, Callable[[int], Plan]] = {
    "full disks": lambda at: fail_from(at, errno.ENOSPC),
    "EIO": lambda at: fail_at(at, errno.EIO),
    "lost answers": lose_answer,
    "doubled answers": answer_twice,
}


def killed(seed: int, folder: Path) -> Mapping[str, int]:
    """Kill processes at a random step of a job, or at a random time."""
    return _often(seed, str(folder), _killed)


def killed_variants(seed: int, folder: Path) -> Mapping[str, int]:
    """Kill processes that change a table of file version 0.1, or one with data overlays."""
    return _often(seed, str(folder), _killed, VARIANTS)


def faulty(seed: int, folder: Path) -> Mapping[str, int]:
    """Let a store fail at a random step of a job."""
    return _often(seed, "memory://faulty" if seed % 2 else str(folder), _faulty)


def unplugged(seed: int, folder: Path) -> Mapping[str, int]:
    """Cut the power at a random step of a job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crashing, "UNFLUSHED", {"fsync": "true"})
        return _often(seed, str(folder), _unplugged)


def _often(
    seed: int, location: str, trial: Callable[..., Mapping[str, int]], families: Sequence[Sequence[Job]] = FAMILIES
) -> Mapping[str, int]:
    """Choose a job and interrupt it several times. Its steps are recorded once, which takes as long as a few runs."""
    rng, counts = random.Random(seed), Counter[str]()
    job = rng.choice(rng.choice(families))
    known = course(job, location)
    for _ in range(TIMES):
        counts.update(trial(rng, location, job, known))
    return counts


def _killed(rng: random.Random, folder: str, job: Job, known: Course) -> Mapping[str, int]:
    at = rng.randrange(known.steps)
    at_a_step = rng.random() < 0.75
    uri = write_files(fresh(folder), known.files)
    child = _forked(lambda: _act(job, uri, _kill_at(at) if at_a_step else None))
    if not at_a_step:
        time.sleep(rng.random() * 0.15)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"{job}: the process ended with {status}"
    visible = _check(job, known, uri, f"killed at step {at} of {known.steps}")
    assert visible or status
    _go_on(job, uri)
    return {"kills": int(status != 0), "kills while vectors were indexed": int(job.family.startswith("IVF"))}


def _faulty(rng: random.Random, location: str, job: Job, known: Course) -> Mapping[str, int]:
    at, name = rng.randrange(known.steps), rng.choice(list(PLANS))
    uri, done = write_files(fresh(location), known.files), False
    try:
        with Faults(PLANS[name](at)):
            job.act(uri)
        done = True
    except StoreError:
        assert name != "doubled answers" or not location.startswith("memory:")
    visible = _check(job, known, uri, f"{name} at step {at} of {known.steps} in {location}")
    assert visible or not done, f"{job}: the job succeeded, but its effect is missing"
    _go_on(job, uri)
    crashing.forget(uri)
    return {name: 1}


def _unplugged(rng: random.Random, folder: str, job: Job, known: Course) -> Mapping[str, int]:
    disk = Path(fresh(folder))
    disk.mkdir()
    uri = write_files(str(disk / "t"), known.files)
    at, done = rng.randrange(known.steps + 1), False
    try:
        with PowerCut(disk, stop_at(at)) as cut:
            job.act(uri)
        done = True
    except Crash:
        pass
    left = str(cut.after(Path(fresh(folder))) / "t")
    if done or known.files:
        visible = _check(job, known, left, f"power cut at step {at} of {known.steps}")
        assert visible or not done, f"{job}: the commit was lost"
        _go_on(job, left)
    return {"power cuts": 1}


def _act(job: Job, uri: str, plan: Plan | None) -> None:
    with Faults(plan):
        job.act(uri)


def _kill_at(at: int) -> Plan:
    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if now == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return do()

    return plan


def _forked(work: Callable[[], Any]) -> int:
    """Fork a child that runs some work. It exits with 0 on success."""
    if child := os.fork():
        return child
    status = 1
    try:
        signal.alarm(SECONDS)
        work()
        status = 0
    finally:
        os._exit(status)
    return 0


def _check(job: Job, known: Course, uri: str, what: str) -> bool:
    """Check that the table shows the state before the job, or one of its versions. Returns whether the job finished."""
    now = newest(uri)
    assert now in known.views, f"{job}, {what}: neither old nor new: {now}"
    tags = refs(uri)
    assert tags in known.refs, f"{job}, {what}: {tags}, of {known.refs}"
    if now is not None:
        check_answers(job, opened(uri))
    return now == known.views[-1] and tags == known.refs[-1]


def _go_on(job: Job, uri: str) -> None:
    """Commit to the table, clean it up, check for unused files, and read it with pylance."""
    if newest(uri) is None:
        crashing.prepare(uri)
    dataset = opened(uri)
    before = dataset.count_rows()
    if before:
        dataset.insert(dataset.to_table(limit=1))
        assert opened(uri).count_rows() == before + 1
    crashing.clean(uri)
    crashing.assert_clean(uri)
    assert not strays(uri)
    if uri.startswith("memory:"):
        opened(uri).validate()
    else:
        check_with_pylance(uri)
