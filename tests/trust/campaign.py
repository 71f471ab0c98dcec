"""Run trials in separate processes, and count their results."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from trust.kinds import TrialKind

TESTS = Path(__file__).parents[1]
MOST_TRIALS_OF_A_PROCESS = 200
"""Number of trials after which a process is replaced. State of earlier trials may hide errors."""
ENOUGH_FAILURES = 5
"""Number of failures after which a kind stops."""


@dataclass
class TrialCounts:
    """The results of trials of one kind.

    Attributes:
        kind: Kind of the trials.
        first: Seed of the first trial. Later trials use the next seeds.
        trials: Number of trials.
        counts: Number of checks by name.
        failures: Seeds of failed trials with their errors.
        seconds: Total duration.
    """

    kind: TrialKind
    first: int
    trials: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    def line(self) -> str:
        """Return a summary line."""
        counts = "".join(f", {count:,} {name}" for name, count in sorted(self.counts.items()))
        seeds = f"seeds {self.first} to {self.first + self.trials - 1}" if self.trials else "no seed"
        failed = f"{len(self.failures)} failed"
        return f"{self.kind.name}: {self.trials:,} trials, {failed}{counts}; {seeds}; {self.seconds:.0f} s"


class TrialProcess:
    """A process that runs trials of one kind. It is restarted after a crash or a timeout.

    Args:
        kind: Kind of the trials.
        folder: Folder for the files of the trials.
    """

    def __init__(self, kind: TrialKind, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._made = 0
        self._log = folder / "log"

    def make(self, seed: int) -> dict[str, int] | str:
        """Run a trial. Returns its checks, or the reason for its failure."""
        process = self._running()
        self._made += 1
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._kind.seconds)
        line = process.stdout.readline() if ready else ""
        if line:
            answer = json.loads(line)
            return answer["counts"] if "counts" in answer else str(answer["error"])
        self.close()
        how = f"the process ended with {process.returncode}" if ready else f"it hung for {self._kind.seconds:.0f} s"
        return f"{how}\n{self._last_words()}"

    def close(self) -> None:
        """Kill the process and its children."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._made >= MOST_TRIALS_OF_A_PROCESS:
            self.close()
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._made = 0
            path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
            quiet = {"LANCE_LOG": "error", "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}
            with open(self._log, "w", encoding="utf-8") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "trust.worker", self._kind.function, str(self._folder)],
                    env={**os.environ, **quiet, "PYTHONPATH": path},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        return self._process

    def _last_words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


def run_kind(
    kind: TrialKind,
    first: int,
    trials: int | None,
    seconds: float | None,
    say: Callable[[str], None] = print,
    is_over: Event | None = None,
) -> TrialCounts:
    """Run trials of one kind in sequence.

    Args:
        kind: Kind of the trials.
        first: Seed of the first trial.
        trials: Number of trials, or None to run until the time limit.
        seconds: Time limit for starting trials, or None.
        say: Receives a message for each failure, and a summary.
        is_over: Event that stops further trials.
    """
    found, begin = TrialCounts(kind, first), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trust-", ignore_cleanup_errors=True) as folder:
        process = TrialProcess(kind, Path(folder))
        try:
            while (trials is None or found.trials < trials) and not (is_over and is_over.is_set()):
                if seconds is not None and found.trials and time.monotonic() - begin > seconds:
                    break
                if len(found.failures) == ENOUGH_FAILURES:
                    say(f"{kind.name}: {ENOUGH_FAILURES} failures, no further trials")
                    break
                _count(found, first + found.trials, process, say)
        finally:
            process.close()
    found.seconds = time.monotonic() - begin
    say(found.line())
    return found


def _count(found: TrialCounts, seed: int, process: TrialProcess, say: Callable[[str], None]) -> None:
    answer = process.make(seed)
    found.trials += 1
    if isinstance(answer, str):
        found.failures.append((seed, answer))
        say(f"FAILED: {found.kind.name}, seed {seed}. Run only this trial: {command(found.kind, seed)}\n{answer}")
    else:
        found.counts.update(answer)


def command(kind: TrialKind, seed: int) -> str:
    """Return the shell command that repeats one trial."""
    return f"PYTHONPATH=.:tests {Path(sys.executable).name} -m trust --only '{kind.name}' --seed {seed} --trials 1"
