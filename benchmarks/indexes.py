"""How fast are filters through scalar indexes, from Python?

Each library builds the indexes on a copy of the table. The values change from round to round, and all contestants get
the same ones. Garbage collection before each round empties the processor's caches, and a single lookup feels it most.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, clock_of, options, race, report
from benchmarks._indexed_tables import indexed_table

LIBRARIES: dict[str, Any] = {OURS: ld, "pylance": lance}
INDEXES = {"id": "BTREE", "moment": "BTREE", "name": "BTREE", "kind": "BITMAP"}
BUILT = {
    "build a B-tree of int64": ("id", "BTREE"),
    "build a B-tree of strings": ("name", "BTREE"),
    "build a bitmap index": ("kind", "BITMAP"),
}

Ask = Callable[[Any, np.random.Generator], object]


def main() -> None:
    """Compare filters, then builds and updates of the indexes."""
    parser = options((__doc__ or "").split("\n")[0], rows=10_000_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    paths = {name: table(name, arguments.rows) for name in LIBRARIES}
    handles = {name: LIBRARIES[name].dataset(path) for name, path in paths.items()}
    cases = []
    for name, ask in questions(arguments.rows).items():
        if arguments.only in name:
            contestants = {who: asker(handle, ask) for who, handle in handles.items()}
            cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    cases += upkeep(paths, arguments)
    report(f"Filter {arguments.rows:,} rows through scalar indexes", cases, arguments)


def questions(rows: int) -> dict[str, Ask]:
    """Return the questions by name."""

    def to_table(text: Callable[[np.random.Generator], str]) -> Ask:
        return lambda dataset, rng: dataset.to_table(filter=text(rng))

    def span(rng: np.random.Generator, width: int) -> str:
        first = int(rng.integers(0, rows - width))
        return f"BETWEEN {first} AND {first + width - 1}"

    return {
        "one row by key": to_table(lambda rng: f"id = {rng.integers(0, rows)}"),
        "one row by string key": to_table(lambda rng: f"name = 'name {rng.integers(0, rows):010d}'"),
        "100 rows by key, one after the other": lambda ds, rng: [
            ds.to_table(filter=f"id = {key}") for key in rng.integers(0, rows, 100).tolist()
        ],
        "one row by key, one column": lambda ds, rng: ds.to_table(
            columns=["value"], filter=f"id = {rng.integers(0, rows)}"
        ),
        "range of 1,000 keys": to_table(lambda rng: f"id {span(rng, 1000)}"),
        "IN of 100 keys": to_table(lambda rng: f"id IN ({', '.join(map(str, rng.integers(0, rows, 100)))})"),
        "AND of two indexed ranges": to_table(
            lambda rng: f"id {span(rng, 100_000)} AND moment {span(rng, rows // 1000)}"
        ),
        "string prefix": to_table(lambda rng: f"starts_with(name, 'name {rng.integers(0, rows // 1000):07d}')"),
        "count of a range": lambda ds, rng: ds.count_rows(f"id {span(rng, rows // 10)}"),
        "count through a bitmap": lambda ds, rng: ds.count_rows(f"kind = {rng.integers(0, 100)}"),
        "indexed range and another condition": to_table(lambda rng: f"id {span(rng, 1000)} AND value % 7 = 3"),
        "a key that does not exist": to_table(lambda rng: f"id = {rows + int(rng.integers(1, rows))}"),
    }


def asker(dataset: Any, ask: Ask) -> Callable[[], object]:
    """Return a function that uses new values in each call. All contestants draw the same ones."""
    seeds = itertools.count()
    return lambda: ask(dataset, np.random.default_rng(next(seeds)))


def upkeep(paths: dict[str, str], arguments: Any) -> Iterator[Case]:
    """Compare building indexes, opening them, and updating them after an append of one per cent."""
    for name, (column, kind) in BUILT.items():
        if arguments.only in name:
            work = {who: partial(build, LIBRARIES[who], path, column, kind) for who, path in paths.items()}
            yield race(name, work, min(3, arguments.rounds), clock_of(arguments))
    if arguments.only in "open, then one row by key":
        work = {who: partial(first_point, LIBRARIES[who], path, arguments.rows) for who, path in paths.items()}
        yield race("open, then one row by key", work, arguments.rounds, clock_of(arguments))
    if arguments.only in "update the indexes after 1 % more rows":
        yield optimized(paths, arguments.rows, clock_of(arguments))


def build(library: Any, path: str, column: str, kind: str) -> None:
    """Build a second index on the column, and drop it."""
    dataset = library.dataset(path)
    dataset.create_scalar_index(column, kind, name="built")
    dataset.drop_index("built")


def first_point(library: Any, path: str, rows: int) -> object:
    """Open a table and read one row by its key."""
    return library.dataset(path).to_table(filter=f"id = {rows // 3}")


def optimized(paths: dict[str, str], rows: int, clock: Callable[[], float]) -> Case:
    """Append one per cent and update the indexes, three times. Only the update is timed."""
    seconds: dict[str, list[float]] = {who: [] for who in paths}
    for _ in range(3):
        for who, path in paths.items():
            copy = f"{path}-optimized"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(path, copy)
            dataset = LIBRARIES[who].dataset(copy)
            dataset.insert(batch(rows, rows // 100, rows))
            begin = clock()
            dataset.optimize.optimize_indices()
            seconds[who].append(clock() - begin)
            shutil.rmtree(copy)
    return Case("update the indexes after 1 % more rows", seconds)


def table(who: str, rows: int) -> str:
    """Return the path of the table. Write it and its indexes if they do not exist."""
    return indexed_table(f"indexes-{rows}-{who}", LIBRARIES[who], batch, rows, INDEXES)


def batch(start: int, count: int, rows: int) -> pa.RecordBatch:
    """Return rows with a shuffled key, an ascending time, a name, a class and further values."""
    rng = np.random.default_rng(start)
    places = np.arange(start, start + count)
    keys = places * 7_368_787 % rows if start < rows else places
    columns = {
        "id": keys,
        "moment": places,
        "name": pa.array([f"name {key:010d}" for key in keys.tolist()]),
        "kind": rng.integers(0, 100, count),
        "value": rng.integers(0, 1 << 40, count),
    }
    return pa.record_batch(columns | {f"v{i}": rng.random(count) for i in range(5)})


if __name__ == "__main__":
    main()
