"""The notice on stderr that kernels are being compiled, when this takes so long that a user wonders."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

PATIENCE: Final = 1.0
"""Seconds of compiling, in a process, after which a user is told: about when people begin to wonder."""
QUIET: Final = "LANCE_DUCK_QUIET"


class FirstUse:
    """The time that a process compiles kernels, of which a user is told once.

    numba compiles one function at a time; a kernel that calls others is still being compiled while they are.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.compiled = 0
        self._depth = 0
        self._start: float | None = None
        self._silent = False

    def enter(self) -> None:
        """Note that a kernel is requested, perhaps by one that is being compiled."""
        self._depth += 1

    def missed(self) -> None:
        """Note that a kernel is in no cache on disk, and is compiled now."""
        self.compiled += 1
        if self._start is None:
            self._start = time.monotonic()
        self._tell()

    def leave(self) -> None:
        """Note that a kernel is ready."""
        self._depth -= 1
        if self._depth == 0 and self._start is not None:
            self.seconds += time.monotonic() - self._start
            self._start = None
            self._tell()

    def silence(self) -> None:
        """Say nothing in this process."""
        self._silent = True

    def _tell(self) -> None:
        running = 0.0 if self._start is None else time.monotonic() - self._start
        if self._silent or self.seconds + running < PATIENCE:
            return
        self._silent = True
        if os.environ.get(QUIET, "") not in ("", "0") or sys.stderr is None:
            return
        sys.stderr.write(
            "lance-duck: compiling kernels, once for this installation; `lance-duck warm-up` does it ahead "
            f"({QUIET}=1 silences this)\n"
        )
        sys.stderr.flush()


first_use: Final = FirstUse()
