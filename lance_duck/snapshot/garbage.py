"""Python's search for cyclic garbage, put off while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cyclic garbage meanwhile: each search looks at all objects made so far again.

    It took 60 % of the time of planning 100,000 fragments (`benchmarks/many_fragments.py`). Other threads make no
    searches either, and what is freed by its count of references is freed as ever.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
