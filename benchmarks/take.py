"""How fast are 1 and 1,000 random rows read, for each common type?"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report
from benchmarks.columns import KINDS, column


def main() -> None:
    """Take rows with both implementations, other rows in every round and the same for both."""
    parser = options(__doc__ or "", rows=1_000_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    kinds = chosen(KINDS, arguments.only)
    cases = [case for kind in kinds for case in take(kind, arguments.rows, arguments.rounds, clock_of(arguments))]
    report(f"Take random rows of {arguments.rows:,}", cases, arguments)


def take(kind: str, rows: int, rounds: int, clock: Callable[[], float]) -> list[Case]:
    """Write a table of one column and race for a row and for a thousand."""
    data = pa.table({"x": column(kind, rows, nulls=False)})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "t.lance")
        lance.write_dataset(data, path)
        handles = {OURS: ld.dataset(path), "pylance": lance.dataset(path)}
        counts = {"1 row": 1, "1,000 rows": 1000}
        return [
            race(f"{kind}, {label}", takers(handles, count, data.num_rows, rounds), rounds, clock)
            for label, count in counts.items()
        ]


def takers(handles: Mapping[str, Any], count: int, rows: int, rounds: int) -> dict[str, Callable[[], object]]:
    """Return a function for each handle; the n-th calls of all take the same rows."""
    rng = np.random.default_rng(count)
    draws = [rng.integers(0, rows, count).tolist() for _ in range(rounds + 1)]

    def taker(handle: Any) -> Callable[[], object]:
        wanted = itertools.cycle(draws)
        return lambda: handle.take(next(wanted))

    return {name: taker(handle) for name, handle in handles.items()}


if __name__ == "__main__":
    main()
