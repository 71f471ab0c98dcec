"""The import behind a lazy name."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_importing = threading.RLock()
"""Held by the thread that imports a module here, and by one that forks: a child could not open the locks that Python
holds for a module that another thread imports. The body of a module uses no lazy name, so that nobody who imports a
module waits for this lock."""


def imported(name: str) -> ModuleType:
    """Import a module; one that is imported already is returned at once."""
    with _importing, _uncollected():
        return import_module(name)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no cyclic garbage meanwhile: what a module defines stays.

    Each search looks at all objects made so far again; `benchmarks/first_use.py --starts` times processes until they
    have read their first table. What was made meanwhile counts as old afterwards, or the next search would look at all
    of it: objects that are frozen and freed again are among the old ones. A process that has frozen objects of its own
    keeps them so.

    The collector belongs to the process: other threads search for nothing meanwhile either. Who found it enabled
    enables it, so that it is enabled again however imports overlap with `snapshot.garbage.uncollected`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _open_in_child() -> None:
    global _importing
    _importing = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=lambda: _importing.acquire(),
        after_in_parent=lambda: _importing.release(),
        after_in_child=_open_in_child,
    )
