"""How fast are bitmap and label list indexes built, opened and searched, from Python?

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
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks._indexed_tables import indexed_table

LIBRARIES: dict[str, Any] = {OURS: ld, "pylance": lance}
INDEXES = {"few": "BITMAP", "name": "BITMAP", "block": "BITMAP", "key": "BITMAP", "tags": "LABEL_LIST"}
CLASSES = 100

Ask = Callable[[Any, np.random.Generator], object]


def main() -> None:
    """Compare index builds, then filters."""
    parser = options((__doc__ or "").split("\n")[0], rows=10_000_000, rounds=9)
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    paths = {who: table(who, arguments.rows) for who in LIBRARIES}
    cases = []
    for column in chosen(INDEXES, arguments.only):
        work = {who: partial(build, LIBRARIES[who], path, column) for who, path in paths.items()}
        cases.append(race(f"build, {column}", work, min(3, arguments.rounds), clock))
    handles = {who: LIBRARIES[who].dataset(path) for who, path in paths.items()}
    asked = questions(arguments.rows)
    for name in chosen(asked, arguments.only):
        contestants = {who: asker(handle, asked[name]) for who, handle in handles.items()}
        cases.append(race(name, contestants, arguments.rounds, clock))
    for column in chosen(("few", "key"), arguments.only):
        work = {who: partial(opened, LIBRARIES[who], path, column) for who, path in paths.items()}
        cases.append(race(f"open, and count one {column}", work, arguments.rounds, clock))
    report(f"Use bitmap indexes of {arguments.rows:,} rows", cases, arguments)


def questions(rows: int) -> dict[str, Ask]:
    """Return the questions by name."""

    def count(text: Callable[[np.random.Generator], str]) -> Ask:
        return lambda dataset, rng: dataset.count_rows(text(rng))

    def name(rng: np.random.Generator) -> str:
        return f"'category {rng.integers(0, CLASSES):03d}'"

    return {
        "count of one few": count(lambda rng: f"few = {rng.integers(0, CLASSES)}"),
        "count of one name": count(lambda rng: f"name = {name(rng)}"),
        "count of all few but one": count(lambda rng: f"few <> {rng.integers(0, CLASSES)}"),
        "count of ten few": count(lambda rng: f"few IN ({', '.join(map(str, rng.integers(0, CLASSES, 10)))})"),
        "count of one block": count(lambda rng: f"block = {rng.integers(0, CLASSES)}"),
        "count of 1,000 keys": count(lambda rng: f"key BETWEEN {(at := int(rng.integers(0, rows)))} AND {at + 999}"),
        "count of a tag": count(lambda rng: f"array_has(tags, {name(rng)})"),
        "count of two tags": count(lambda rng: f"array_has_all(tags, [{name(rng)}, {name(rng)}])"),
        "rows of one key": lambda dataset, rng: dataset.to_table(filter=f"key = {rng.integers(0, rows)}"),
        "values of one few": lambda dataset, rng: dataset.to_table(
            columns=["key"], filter=f"few = {rng.integers(0, CLASSES)}"
        ),
        "few and name": count(lambda rng: f"few = {rng.integers(0, CLASSES)} AND name = {name(rng)}"),
    }


def asker(dataset: Any, ask: Ask) -> Callable[[], object]:
    """Return a function with a new random question per call, equal for all contestants."""
    seeds = itertools.count()
    return lambda: ask(dataset, np.random.default_rng(next(seeds)))


def build(library: Any, path: str, column: str) -> None:
    """Build a second index on the column, and drop it."""
    dataset = library.dataset(path)
    dataset.create_scalar_index(column, INDEXES[column], name="built")
    dataset.drop_index("built")


def opened(library: Any, path: str, column: str) -> object:
    """Open the table, and count one value."""
    return library.dataset(path).count_rows(f"{column} = 7")


def table(who: str, rows: int) -> str:
    """Write a table and its indexes, unless they are there."""
    return indexed_table(f"bitmaps-{rows}-{who}", LIBRARIES[who], batch, rows, INDEXES)


def batch(start: int, count: int, rows: int) -> pa.RecordBatch:
    """Return rows with a class, its name, an ascending class, a unique key and two tags."""
    rng = np.random.default_rng(start)
    names = pa.array([f"category {i:03d}" for i in range(CLASSES)])
    places = np.arange(start, start + count)
    tags = names.take(pa.array(rng.integers(0, CLASSES, 2 * count)))
    columns = {
        "few": rng.integers(0, CLASSES, count),
        "name": names.take(pa.array(rng.integers(0, CLASSES, count))),
        "block": places * CLASSES // rows,
        "key": places * 7_368_787 % rows,
        "tags": pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * count + 1, 2), pa.int32()), tags),
    }
    return pa.record_batch(columns)


if __name__ == "__main__":
    main()
