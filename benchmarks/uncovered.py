"""How fast are filters and vector searches if the newest rows have no index yet?

The indexes cover one large fragment. Each later fragment has ten rows, as after small INSERTs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report

DIM = 64
INSERTED = 10


def rows(first: int, number: int) -> pa.Table:
    """Return rows with ids from `first`."""
    values = np.random.default_rng(first).standard_normal(number * DIM, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(values, DIM)
    texts = [f"text {each % 997}" for each in range(first, first + number)]
    return pa.table({"id": range(first, first + number), "v": vectors, "s": texts})


def write(path: str, rows_covered: int, fragments: int) -> None:
    """Write a table with a scalar index and a vector index, then append fragments."""
    table = ld.write_dataset(rows(0, rows_covered), path)
    table.create_scalar_index("id", "BTREE")
    table.create_index("v", "IVF_FLAT", num_partitions=64)
    for number in range(fragments):
        ld.write_dataset(rows(rows_covered + number * INSERTED, INSERTED), path, mode="append")


def main() -> None:
    """Query tables with more and more fragments, with an open handle and with new ones."""
    parser = options(__doc__ or "", rows=100_000, rounds=30)
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    cases = []
    for fragments in (0, 10, 100):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/t.lance"
            write(path, arguments.rows, fragments)
            questions = {
                f"{fragments} fragments without an index: {what}, {how}": contestants(path, what, how)
                for what in ("a row by its key", "ten nearest rows")
                for how in ("open handle", "new handle")
            }
            cases += [
                race(name, questions[name], arguments.rounds, clock) for name in chosen(questions, arguments.only)
            ]
    report(f"Query a table of {arguments.rows:,} rows after inserts of {INSERTED} rows", cases, arguments)


def contestants(path: str, what: str, how: str) -> dict[str, Callable[[], object]]:
    """Return what each side does for a case."""
    keys = count()
    vector = np.full(DIM, 0.1, np.float32)
    nearest = {"column": "v", "q": vector, "k": 10, "nprobes": 8}

    def by_key(table: Any) -> object:
        return table.to_table(columns=["id", "s"], filter=f"id = {next(keys)}")

    def by_vector(table: Any) -> object:
        return table.to_table(columns=["id", "s", "_distance"], nearest=nearest)

    ask = by_key if what == "a row by its key" else by_vector

    def asked(open_: Callable[[str], Any]) -> Callable[[], object]:
        return partial(ask, open_(path)) if how == "open handle" else lambda: ask(open_(path))

    return {OURS: asked(ld.dataset), "pylance": asked(lance.dataset)}


if __name__ == "__main__":
    main()
