"""How much time does the check of the primary key cost an INSERT?

The peers are the same INSERT without the check, and an INSERT into a native table with a primary key.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report

UNCHECKED, NATIVE = "without check", "native table"
SIZES = (10, 1_000, 100_000)
WAYS = ("no index", "B-tree")
NOTE = "The peer without check ran `SET lance_check_primary_key = false`."


def inserter(connection: Any, size: int, first: int) -> Callable[[], object]:
    """Return a function that inserts rows with new keys in random order."""
    numbers = count()

    def insert() -> object:
        start = first + next(numbers) * size
        more = pa.table({"id": np.random.default_rng(start).permutation(size) + start, "n": np.arange(size)})
        connection.register("more", more)
        return connection.execute("INSERT INTO t FROM more").fetchall()

    return insert


def measured(size: int, way: str, rows: int, rounds: int, clock: Callable[[], float]) -> Case:
    """Race one INSERT."""
    with tempfile.TemporaryDirectory() as folder:
        contestants = {}
        for who in (OURS, UNCHECKED, NATIVE):
            con = duckdb.connect() if who == NATIVE else ld.connect(Path(folder) / who.replace(" ", "-"))
            if who != NATIVE:
                con.execute("USE lance")
            con.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
            con.execute("INSERT INTO t SELECT range, 0 FROM range(?)", [rows])
            if way == "B-tree" and who != NATIVE:
                con.execute("CREATE INDEX by_id ON t (id)")
            if who == UNCHECKED:
                con.execute("SET lance_check_primary_key = false")
            contestants[who] = inserter(con, size, rows)
        return race(f"{size:,} rows, {way}", contestants, rounds, clock)


def main() -> None:
    """Insert few and many rows, with and without an index of the key."""
    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000)
    add_clock(parser)
    arguments = parser.parse_args()
    cases = {f"{size:,} rows, {way}": (size, way) for way in WAYS for size in SIZES}
    clock = clock_of(arguments)
    found = [measured(*cases[name], arguments.rows, arguments.rounds, clock) for name in chosen(cases, arguments.only)]
    report(f"Insert into a table of {arguments.rows:,} rows with a primary key", found, arguments, NOTE)


if __name__ == "__main__":
    main()
