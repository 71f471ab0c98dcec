"""Another writer that commits between the preparation and the commit of a change."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


def between(monkeypatch: pytest.MonkeyPatch, module: ModuleType, run: str, other: Callable[[], object]) -> list[int]:
    """Run `other` once after the first tasks of a function; return one mark per run."""
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
