"""Runs of trials, their results, and the page that shows the totals."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Event

from trust.__main__ import PAGE, RUNS
from trust.campaign import TrialCounts, command, run_kind
from trust.kinds import KINDS, TrialKind
from trust.page import FAULTS, next_seed, record, runs, seed_ranges, write_page

EMPTY_PAGE = "".join(
    f"before\n\n<!-- {name} -->\n\n<!-- end of {name} -->\n\n" for name in ("kinds", "counts", "versions", "faults")
)


def pass_fail_exit_or_hang(seed: int, folder: Path) -> Mapping[str, int]:
    """Pass, fail, end the process or hang, depending on the seed."""
    if seed == 1:
        raise ValueError("one is wrong")
    if seed == 2:
        os._exit(3)
    if seed == 3:
        time.sleep(60)
    print("output of a trial")
    (folder / "file").write_text("x")
    return {"checks": seed + 1}


KIND = TrialKind("sample", "test_campaign:pass_fail_exit_or_hang", "It passes, fails, exits or hangs.", 1, seconds=5.0)


def test_failures_crashes_and_hangs_are_reported_with_their_seed() -> None:
    said: list[str] = []
    found = run_kind(KIND, 0, 6, None, said.append)
    assert (found.trials, found.counts) == (6, {"checks": 1 + 5 + 6})
    assert [seed for seed, _ in found.failures] == [1, 2, 3]
    for (seed, why), reason in zip(found.failures, ("one is wrong", "ended with 3", "hung for 5 s"), strict=True):
        assert reason in why
        assert any(command(KIND, seed) in text and reason in text for text in said)
    assert said[-1].startswith("sample: 6 trials, 3 failed, 12 checks; seeds 0 to 5;")


def test_a_campaign_without_time_runs_one_trial() -> None:
    assert run_kind(KIND, 4, None, 0.0, lambda text: None).trials == 1


def test_no_trial_begins_after_the_deadline() -> None:
    is_over = Event()
    is_over.set()
    assert run_kind(KIND, 4, 9, None, lambda text: None, is_over).trials == 0


def test_recorded_runs_are_summed_and_no_seed_is_counted_twice(tmp_path: Path) -> None:
    file, page = tmp_path / "runs.jsonl", tmp_path / "page.md"
    page.write_text(f"{EMPTY_PAGE}after\n")
    other = TrialKind("other", "", "", 1)
    assert record(file, TrialCounts(KIND, 7, 1000, Counter(checks=2000)))
    assert record(file, TrialCounts(other, 0, 3, failures=[(2, "why")]))
    assert record(file, TrialCounts(KIND, 1007, 2, Counter(checks=4, more=1)))
    assert not record(file, TrialCounts(KIND, 1008, 5))
    assert not record(file, TrialCounts(KIND, 5000, 0))
    assert record(file, TrialCounts(KIND, 2000, 1, Counter(checks=1)))
    write_page(page, runs(file), {"First": [KIND, TrialKind("never made", "", "", 1)], "Second": [other]})
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("|")]
    assert ["sample", "It passes, fails, exits or hangs."] in rows
    assert [row[:5] for row in rows if len(row) == 6] == [
        ["kind", "trials", "failures", "checks", "seeds"],
        ["---"] * 5,
        ["sample", "1,003", "0", "checks: 2,005; more: 1", "7 to 1008, 2000"],
        ["other", "3", "1", "", "0 to 2"],
    ]
    assert rows[-1] == ["other", "2", "not fixed yet"]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert (next_seed(file, "sample"), next_seed(file, "never made")) == (2001, 0)


def test_the_documented_campaign_totals_match_the_recorded_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    write_page(page, runs(RUNS))
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    assert {run["kind"] for run in runs(RUNS)} <= {kind.name for kind in KINDS}
    for kind in KINDS:
        of_kind = [run for run in runs(RUNS) if run["kind"] == kind.name]
        assert sum(last - first + 1 for first, last in seed_ranges(of_kind)) == sum(run["trials"] for run in of_kind)


def test_described_faults_belong_to_recorded_failures() -> None:
    assert set(FAULTS) <= {(run["kind"], seed) for run in runs(RUNS) for seed in run["failed"]}


def test_campaign_kinds_have_unique_names_and_folders() -> None:
    assert len({kind.name for kind in KINDS}) == len({kind.function for kind in KINDS}) == len(KINDS)
