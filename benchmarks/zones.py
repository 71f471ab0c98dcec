"""How fast are filters through zone maps and Bloom filters, from Python?

Each library builds the indexes on a copy of the table. The values change from round to round, and all contestants get
the same ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report
from benchmarks._indexed_tables import indexed_table

LIBRARIES: dict[str, Any] = {OURS: ld, "pylance": lance}
INDEXES = {"moment": "ZONEMAP", "name": "ZONEMAP", "key": "BLOOMFILTER"}
BUILT = {
    "build, zone map of int64": ("moment", "ZONEMAP"),
    "build, zone map of string": ("name", "ZONEMAP"),
    "build, Bloom filters of int64": ("key", "BLOOMFILTER"),
    "build, Bloom filters of string": ("name", "BLOOMFILTER"),
}

Ask = Callable[[Any, np.random.Generator], object]


def main() -> None:
    """Race through queries, then through building and opening."""
    parser = options((__doc__ or "").split("\n")[0], rows=10_000_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    paths = {name: table(name, arguments.rows) for name in LIBRARIES}
    handles = {name: LIBRARIES[name].dataset(path) for name, path in paths.items()}
    cases = []
    for name, ask in questions(arguments.rows).items():
        if arguments.only in name:
            contestants = {who: asker(handle, ask) for who, handle in handles.items()}
            cases.append(race(name, contestants, arguments.rounds, clock))
    for name, (column, kind) in BUILT.items():
        if arguments.only in name:
            work = {who: partial(build, LIBRARIES[who], path, column, kind) for who, path in paths.items()}
            cases.append(race(name, work, min(3, arguments.rounds), clock))
    for column in ("moment", "key"):
        name = f"first {column} of a table just opened"
        if arguments.only in name:
            work = {who: partial(first, LIBRARIES[who], path, column) for who, path in paths.items()}
            cases.append(race(name, work, arguments.rounds, clock))
    report(f"Use zone maps and Bloom filters of {arguments.rows:,} rows", cases, arguments)


def questions(rows: int) -> dict[str, Ask]:
    """Return the questions by name."""

    def to_table(text: Callable[[np.random.Generator], str]) -> Ask:
        return lambda dataset, rng: dataset.to_table(filter=text(rng))

    def span(rng: np.random.Generator, width: int) -> str:
        begin = int(rng.integers(0, rows - width))
        return f"moment BETWEEN {begin} AND {begin + width - 1}"

    def keys(rng: np.random.Generator, count: int) -> str:
        return ", ".join(str(key_of(int(place), rows)) for place in rng.integers(0, rows, count))

    return {
        "zone map, one row": to_table(lambda rng: f"moment = {rng.integers(0, rows)}"),
        "zone map, range of 1,000": to_table(lambda rng: span(rng, 1000)),
        "zone map, range of a tenth": lambda ds, rng: ds.to_table(columns=["value"], filter=span(rng, rows // 10)),
        "zone map, count of a tenth": lambda ds, rng: ds.count_rows(span(rng, rows // 10)),
        "zone map, one row by string": to_table(lambda rng: f"name = 'name {rng.integers(0, rows):010d}'"),
        "zone map, prefix": to_table(lambda rng: f"starts_with(name, 'name {rng.integers(0, rows // 1000):07d}')"),
        "zone map, a value that does not exist": to_table(lambda rng: f"moment = {rows + int(rng.integers(1, rows))}"),
        "Bloom filters, one row": to_table(lambda rng: f"key = {keys(rng, 1)}"),
        "Bloom filters, IN of 10": to_table(lambda rng: f"key IN ({keys(rng, 10)})"),
        "Bloom filters, a value that does not exist": to_table(
            lambda rng: f"key = {rows + int(rng.integers(1, rows))}"
        ),
    }


def asker(dataset: Any, ask: Ask) -> Callable[[], object]:
    """Return a function that uses new values in each call. All contestants draw the same ones."""
    seeds = itertools.count()
    return lambda: ask(dataset, np.random.default_rng(next(seeds)))


def build(library: Any, path: str, column: str, kind: str) -> None:
    """Build a second index on the column, and drop it."""
    dataset = library.dataset(path)
    dataset.create_scalar_index(column, kind, name="built")
    dataset.drop_index("built")


def first(library: Any, path: str, column: str) -> object:
    """Open a table, and look one row up."""
    return library.dataset(path).to_table(filter=f"{column} = 77")


def table(who: str, rows: int) -> str:
    """Write a table and its indexes, unless they are there."""
    return indexed_table(f"zones-{rows}-{who}", LIBRARIES[who], batch, rows, INDEXES)


def key_of(place: int, rows: int) -> int:
    """Return the key in a row, which is not related to the row's position."""
    return place * 7_368_787 % rows


def batch(start: int, count: int, rows: int) -> pa.RecordBatch:
    """Rows from `start`: a time and a name that ascend, a shuffled key, and a value."""
    places = np.arange(start, start + count)
    columns = {
        "moment": places,
        "name": pa.array([f"name {place:010d}" for place in places.tolist()]),
        "key": places * 7_368_787 % rows,
        "value": np.random.default_rng(start).integers(0, 1 << 40, count),
    }
    return pa.record_batch(columns)


if __name__ == "__main__":
    main()
