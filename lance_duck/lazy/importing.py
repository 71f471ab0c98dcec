"""The import behind a lazy name."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType
from typing import Final

from lance_duck.lazy.garbage import uncollected

_importing = threading.RLock()
"""Held by the thread that imports a module here, and by one that forks: a child could not open the locks that Python
holds for a module that another thread imports. The body of a module uses no lazy name, so that nobody who imports a
module waits for this lock."""


def imported(name: str) -> ModuleType:
    """Import a module; one that is imported already is returned at once.

    Cyclic garbage is not looked for meanwhile, as what a module defines stays (`benchmarks/first_use.py --starts`).
    """
    with _importing, uncollected(ages=True):
        return import_module(name)


_FRAME: Final = 1 << 14
"""Frame size of `imported`, in values, which makes Python allocate 256 KB of memory for the frames of a thread.

Python allocates 16 KB by default, which about ten nested imports fill. A loop at the end of such a block, as in
`dataclass`, maps and unmaps memory at each call."""
imported.__code__ = imported.__code__.replace(co_stacksize=_FRAME)


def _open_in_child() -> None:
    global _importing
    _importing = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=lambda: _importing.acquire(),
        after_in_parent=lambda: _importing.release(),
        after_in_child=_open_in_child,
    )
