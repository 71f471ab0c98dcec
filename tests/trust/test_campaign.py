"""The runner: failures come with their seeds, and processes that die or hang are failures."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from trust.campaign import TrialCounts, command, run_kind
from trust.kinds import KINDS, TrialKind
from trust.page import BEGIN, END, write_page


def as_its_seed_says(seed: int, folder: Path) -> Mapping[str, int]:
    """A trial that is right, wrong, deadly or endless."""
    if seed == 1:
        raise ValueError("one is wrong")
    if seed == 2:
        os._exit(3)
    if seed == 3:
        time.sleep(60)
    print("whatever a trial prints")
    (folder / "file").write_text("x")
    return {"checks": seed + 1}


KIND = TrialKind("sample", "test_campaign:as_its_seed_says", "what its seed says", 1, seconds=1.0)


def test_what_is_wrong_dies_or_hangs_is_told_with_its_seed() -> None:
    said: list[str] = []
    found = run_kind(KIND, 0, 6, None, said.append)
    assert (found.trials, found.counts) == (6, {"checks": 1 + 5 + 6})
    assert [seed for seed, _ in found.failures] == [1, 2, 3]
    for (seed, why), reason in zip(found.failures, ("one is wrong", "ended with 3", "hung for 1 s"), strict=True):
        assert reason in why
        assert any(command(KIND, seed) in text and reason in text for text in said)
    assert said[-1].startswith("sample: 6 trials, 3 failed, 12 checks; seeds 0 to 5;")


def test_time_that_is_over_ends_it_after_a_trial() -> None:
    assert run_kind(KIND, 4, None, 0.0, lambda text: None).trials == 1


def test_rows_of_other_kinds_stay_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\n\n{END}\n\nafter\n")
    other = TrialKind("other", "", "", 1)
    write_page(page, [TrialCounts(KIND, 7, 1000), TrialCounts(other, 0, 3, failures=[(2, "why")])])
    write_page(page, [TrialCounts(other, 5, 2)])
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("|")][2:]
    assert [(row[0], row[2], row[3], row[5]) for row in rows] == [
        ("| sample", "1,000", "0", "7 to 1006"),
        ("| other", "2", "0", "5 to 6"),
    ]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_kinds_have_names_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len({kind.place for kind in KINDS}) == len(KINDS)
