"""Python's search for cyclic garbage, put off while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from lance_duck import forks

_is_put_off = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cyclic garbage meanwhile: each search looks at all objects made so far again.

    It took 60 % of the time of planning 100,000 fragments (`benchmarks/many_fragments.py`). Other threads make no
    searches either, and what is freed by its count of references is freed as ever.
    """
    global _is_put_off
    was_enabled = gc.isenabled()
    gc.disable()
    _is_put_off |= was_enabled
    try:
        yield
    finally:
        if was_enabled:
            _is_put_off = False
            gc.enable()


def _search_in_child() -> None:
    """Search again in a forked child, which does not have the thread that would."""
    if _is_put_off:
        gc.enable()


forks.after_fork(_search_in_child)
