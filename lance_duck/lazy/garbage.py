"""Python's search for cyclic garbage, put off while many objects are made that stay."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_is_put_off = False


@contextmanager
def uncollected(*, ages: bool = False) -> Iterator[None]:
    """Look for no cyclic garbage meanwhile: each search looks at all objects made so far again.

    It took 60 % of the time of planning 100,000 fragments (`benchmarks/many_fragments.py`). Other threads make no
    searches either, and what is freed by its count of references is freed as ever. Who found searches enabled enables
    them, so that they are enabled again however several of these overlap.

    Args:
        ages: Whether the objects of the process count as old afterwards, so that the next search looks at few of them.
            A process that has frozen objects of its own keeps them so. Not for what is done often: without young
            objects, old garbage is not looked for.
    """
    global _is_put_off
    was_enabled = gc.isenabled()
    gc.disable()
    _is_put_off |= was_enabled
    try:
        yield
    finally:
        if was_enabled:
            if ages and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # to the old objects
            _is_put_off = False
            gc.enable()


def _search_in_child() -> None:
    """Search again in a forked child, which does not have the thread that would."""
    if _is_put_off:
        gc.enable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_search_in_child)
