"""Notices while kernels are compiled."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from lance_duck.kernels import notice
from lance_duck.kernels.notice import SUBJECTS, FirstUse

SEARCH = "kernels.postings.search.best_of_any.find_best_of_any"
_, KERNELS, SECONDS = SUBJECTS["kernels.postings.search"]
WRITE = "kernels.pages.bitpacking.pack"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(notice.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("LANCE_DUCK_QUIET", raising=False)
    return now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(notice, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("TERM", "xterm")
    return stream


def compile_one(first_use: FirstUse, clock: list[float], name: str = SEARCH, seconds: float = 0.1) -> None:
    first_use.enter()
    first_use.missed(name)
    clock[0] += seconds
    first_use.leave()


def test_the_first_kernel_announces_its_subject_immediately(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    first_use = FirstUse()
    first_use.enter()
    first_use.missed(SEARCH)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"lance-duck: compiling kernels for text search, up to {KERNELS} in about {SECONDS} s, "
        "once for this installation; "
        "`lance-duck warm-up` does it ahead (LANCE_DUCK_QUIET=1 silences this)\n"
    )


def test_every_subject_is_announced_once(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    for name in (SEARCH, WRITE, SEARCH, WRITE):
        compile_one(first_use, clock, name)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" kernels for ")[1].split(",")[0] for line in lines] == ["text search", "reading and writing"]
    assert (first_use.compiled, round(first_use.seconds, 3)) == (4, 0.4)


def test_every_kernel_has_a_subject() -> None:
    assert [next(start for start in SUBJECTS if name.startswith(start)) for name in (SEARCH, WRITE)] == [
        "kernels.postings.search",
        "",
    ]


def test_a_terminal_shows_a_bar_and_clears_it(clock: list[float], terminal: Terminal) -> None:
    first_use = FirstUse()
    first_use.enter()
    for _ in range(KERNELS // 2):
        first_use.missed(SEARCH)
    shown = terminal.getvalue()
    assert shown.endswith("\r" + "█" * 12 + "░" * 12 + f" {KERNELS // 2} of about {KERNELS} ")
    first_use.leave()
    assert terminal.getvalue() == shown + "\r\x1b[K"


def test_a_pipe_gets_no_bar(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    compile_one(first_use, clock)
    assert "\r" not in capsys.readouterr().err


def test_a_warm_up_shows_one_progress_bar(clock: list[float], terminal: Terminal) -> None:
    first_use = FirstUse()
    first_use.begin_warm_up()
    compile_one(first_use, clock, SEARCH)
    compile_one(first_use, clock, WRITE)
    first_use.end_warm_up()
    shown = terminal.getvalue()
    assert (shown.count("kernels for"), shown.count("2 of about"), shown.endswith("\r\x1b[K")) == (1, 1, True)


def test_nested_kernels_count_compile_time_once(clock: list[float]) -> None:
    first_use = FirstUse()
    first_use.enter()
    first_use.missed(SEARCH)
    clock[0] += 1.5
    compile_one(first_use, clock, SEARCH, 0.5)
    first_use.leave()
    assert first_use.seconds == 2.0


def test_kernels_loaded_from_disk_are_not_counted(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    first_use = FirstUse()
    first_use.enter()
    clock[0] += 5
    first_use.leave()
    assert (first_use.compiled, first_use.seconds, capsys.readouterr().err) == (0, 0.0, "")


def test_notices_can_be_disabled_by_a_variable_or_a_call(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    silenced = FirstUse()
    silenced.silence()
    compile_one(silenced, clock)
    monkeypatch.setenv("LANCE_DUCK_QUIET", "1")
    compile_one(FirstUse(), clock)
    assert capsys.readouterr().err == ""
