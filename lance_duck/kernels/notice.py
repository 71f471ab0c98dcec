"""Notices on stderr about kernels that are being compiled: one line per subject, and a bar on a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import Final, TextIO

QUIET: Final = "LANCE_DUCK_QUIET"
"""Environment variable that silences the notices."""

SUBJECTS: Final = {
    "kernels.postings.search": ("text search", 60, 20),
    "kernels.postings": ("text indexes", 100, 15),
    "kernels.tokens": ("text indexes", 100, 15),
    "kernels.vectors": ("vectors", 30, 6),
    "kernels.json": ("JSON", 70, 10),
    "": ("reading and writing", 200, 20),
}
"""Kernel subjects by name prefix, each with the kernel count and the compile time in seconds.

The numbers are rounded from `benchmarks/first_use.py --subjects`.
"""
_WARM_UP: Final = ("warm-up", 450, 70)
_BAR: Final = 24


class FirstUse:
    """The kernels that this process compiles.

    numba compiles one function at a time. While a subroutine compiles, the kernels that call it are still compiling.

    Attributes:
        seconds: Seconds spent compiling.
        compiled: Number of compiled kernels.
        by_subject: Number of compiled kernels, and their compile time in seconds, by subject.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.compiled = 0
        self._depth = 0
        self._start: float | None = None
        self._silent = False
        self._announced: set[str] = set()
        self.by_subject: dict[str, list[float]] = {}
        self._subject: tuple[str, int, int] | None = None
        self._last = ""
        self._has_bar = False

    def enter(self) -> None:
        """Record a request for a kernel. The request may come from another kernel that is being compiled."""
        self._depth += 1

    def missed(self, name: str) -> None:
        """Record that a kernel is neither on disk nor in a pack, and must be compiled."""
        self.compiled += 1
        if self._start is None:
            self._start = time.monotonic()
        subject = self._subject or next(about for start, about in SUBJECTS.items() if name.startswith(start))
        self._last = subject[0]
        self.by_subject.setdefault(self._last, [0, 0.0])[0] += 1
        self._tell(subject)

    def leave(self) -> None:
        """Record that a kernel is ready."""
        self._depth -= 1
        if self._depth == 0 and self._start is not None:
            spent = time.monotonic() - self._start
            self.seconds += spent
            self.by_subject[self._last][1] += spent
            self._start = None
            if self._subject is None:
                self._clear_bar()

    def silence(self) -> None:
        """Disable notices in this process."""
        self._silent = True

    def begin_warm_up(self) -> None:
        """Report all kernels as one subject until `end_warm_up`."""
        self._subject = _WARM_UP

    def end_warm_up(self) -> None:
        """End the warm-up."""
        self._subject = None
        self._clear_bar()

    def _tell(self, subject: tuple[str, int, int]) -> None:
        stream = None if self._silent or os.environ.get(QUIET, "") not in ("", "0") else sys.stderr
        if stream is None:
            return
        name, kernels, seconds = subject
        if name not in self._announced:
            self._announced.add(name)
            self._clear_bar()
            hint = "" if subject is _WARM_UP else f"; `lance-duck warm-up` does it ahead ({QUIET}=1 silences this)"
            stream.write(
                f"lance-duck: compiling kernels for {name}, up to {kernels} in about {seconds} s, "
                f"once for this installation{hint}\n"
            )
        if _is_terminal(stream):
            done = int(self.by_subject[name][0])
            filled = min(done * _BAR // kernels, _BAR)
            stream.write(f"\r{'█' * filled}{'░' * (_BAR - filled)} {done} of about {max(kernels, done)} ")
            self._has_bar = True
        stream.flush()

    def _clear_bar(self) -> None:
        if self._has_bar and sys.stderr is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._has_bar = False


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


first_use: Final = FirstUse()
