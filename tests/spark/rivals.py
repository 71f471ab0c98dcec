"""Another writer, who comes when a change has been prepared and is not committed yet."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


def between(monkeypatch: pytest.MonkeyPatch, module: ModuleType, run: str, other: Callable[[], object]) -> list[int]:
    """Have `other` come once, after the first tasks that a function of a module runs; returns a mark for each run."""
    real = getattr(module, run)
    seen: list[int] = []

    def runs(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        seen.append(1)
        if len(seen) == 1:
            other()
        return found

    monkeypatch.setattr(module, run, runs)
    return seen
