"""How fast are distinct numbers found by sorting, compared with numpy's hash table?"""

from __future__ import annotations

import numpy as np

from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report
from lance_duck.arrow.distinct import distinct

PEER = "numpy"
SIZES = (100, 10_000, 100_000, 1_000_000)
KINDS = {
    "by chance": lambda rng, size: rng.integers(0, 1 << 40, size),
    "ascending": lambda rng, size: np.arange(size),
    "few": lambda rng, size: rng.integers(0, 4, size),
}


def main() -> None:
    """Race both on numbers by chance, on ascending ones, and on a few that repeat."""
    parser = options(__doc__ or "", rows=None)
    add_clock(parser)
    arguments = parser.parse_args()
    cases: list[Case] = []
    labels = {f"{size:,} {kind}": (size, kind) for size in SIZES for kind in KINDS}
    for name in chosen(labels, arguments.only):
        size, kind = labels[name]
        numbers = KINDS[kind](np.random.default_rng(0), size)
        assert (distinct(numbers) == np.unique(numbers)).all()
        contestants = {
            OURS: lambda numbers=numbers: distinct(numbers),
            PEER: lambda numbers=numbers: np.unique(numbers),
        }
        cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report("Distinct numbers of an array", cases, arguments)


if __name__ == "__main__":
    main()
