"""What a user is told while kernels are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lance_duck.kernels import notice
from lance_duck.kernels.notice import FirstUse


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(notice.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("LANCE_DUCK_QUIET", raising=False)
    return now


def compile_for(first_use: FirstUse, clock: list[float], seconds: float) -> None:
    first_use.enter()
    first_use.missed()
    clock[0] += seconds
    first_use.leave()


def test_nothing_is_said_within_a_second(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    compile_for(first_use, clock, 0.5)
    compile_for(first_use, clock, 0.4)
    assert capsys.readouterr().err == ""
    assert (first_use.compiled, round(first_use.seconds, 3)) == (2, 0.9)


def test_one_line_is_said_after_a_second_and_no_other(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    for _ in range(5):
        compile_for(first_use, clock, 0.6)
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), said.err.count("`lance-duck warm-up`")) == ("", 1, 1)


def test_a_user_is_told_while_a_kernel_is_compiled_that_calls_others(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    first_use = FirstUse()
    first_use.enter()
    first_use.missed()
    clock[0] += 1.5
    compile_for(first_use, clock, 0.5)
    assert "compiling kernels" in capsys.readouterr().err
    first_use.leave()
    assert first_use.seconds == 2.0


def test_kernels_that_come_from_disk_count_for_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    first_use.enter()
    clock[0] += 5
    first_use.leave()
    assert (first_use.compiled, first_use.seconds, capsys.readouterr().err) == (0, 0.0, "")


def test_the_line_is_silenced_by_a_variable_or_by_a_call(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    silenced = FirstUse()
    silenced.silence()
    compile_for(silenced, clock, 5)
    monkeypatch.setenv("LANCE_DUCK_QUIET", "1")
    compile_for(FirstUse(), clock, 5)
    assert capsys.readouterr().err == ""


def test_a_process_without_stderr_goes_on(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    compile_for(FirstUse(), clock, 5)


def test_a_new_installation_says_one_line_and_the_next_process_none(tmp_path: Path) -> None:
    script = f"""
import numpy as np
from lance_duck.kernels import cache, notice
cache.cache_folders = lambda: (cache.Path({str(tmp_path)!r}),)
from lance_duck.kernels.numbers import rle_encode as rle_out
notice.PATIENCE = 0.0
for words in (np.uint8, np.uint16):
    rle_out.count_runs(np.zeros(2, words), np.full(1, 2), np.zeros(1, np.int64))
"""
    environment = {**os.environ, "LANCE_DUCK_QUIET": ""}
    said = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stderr.count("compiling kernels")
        for _ in range(2)
    ]
    assert said == [1, 0]
