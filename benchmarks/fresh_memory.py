"""How much processor time does new memory cost, from numpy and from Arrow's pool?"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, chosen, options, race, report
from lance_duck.kernels.memory import Bytes

SIZES: Final = tuple(1 << power for power in range(12, 24))
WRITTEN: Final = 1 << 27
"""Bytes that one run writes."""
KEPT: Final = 40
"""Number of arrays in use at a time, like batches in a queue."""


def write(allocate: Callable[[int], Bytes], size: int) -> None:
    """Allocate arrays, write to each cache line, and drop the oldest array."""
    held: deque[Bytes] = deque(maxlen=KEPT)
    for _ in range(WRITTEN // size):
        array = allocate(size)
        array[::64] = 1
        held.append(array)


def pooled(size: int) -> Bytes:
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def fresh(size: int) -> Bytes:
    return np.empty(size, np.uint8)


def main() -> None:
    """Race both, size by size."""
    parser = options(__doc__ or "", rows=None)
    arguments = parser.parse_args()
    labels = {f"{size // 1024} KiB": size for size in SIZES}
    cases = [
        race(
            label,
            {OURS: partial(write, pooled, labels[label]), "numpy": partial(write, fresh, labels[label])},
            arguments.rounds,
            time.process_time,
        )
        for label in chosen(labels, arguments.only)
    ]
    report(f"Writing {WRITTEN >> 20} MiB into new memory, processor time", cases, arguments)


if __name__ == "__main__":
    main()
