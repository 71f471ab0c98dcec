"""A cache of the last decompressed buffers of a column."""

from __future__ import annotations

from lance_duck.kernels.memory import Bytes

KEPT = 2
"""Neighbouring pages are read by two threads at most."""


class Recent:
    """A cache of `KEPT` buffers by their offset in the file; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[int, Bytes], ...] = ()

    def get(self, key: int) -> Bytes | None:
        """Return the buffer that was put under `key`, if it is still there."""
        for key_before, data in self._kept:
            if key_before == key:
                return data
        return None

    def put(self, key: int, data: Bytes) -> None:
        """Keep a buffer in place of the oldest."""
        others = [entry for entry in self._kept if entry[0] != key]
        self._kept = ((key, data), *others[: KEPT - 1])
