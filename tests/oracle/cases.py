"""The comparisons of one test, counted."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


class Cases:
    """The comparisons of one test: all of them run, then all that failed are shown."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[str] = []

    @contextmanager
    def case(self, name: str, count: int = 1) -> Iterator[None]:
        """Run one comparison, or count several."""
        self.count += count
        try:
            yield
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            self.failures.append(f"{name}: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})")

    def settle(self) -> None:
        """Fail if a comparison failed."""
        if self.failures:
            raise AssertionError(f"{len(self.failures)} of {self.count} cases failed\n" + "\n".join(self.failures))
