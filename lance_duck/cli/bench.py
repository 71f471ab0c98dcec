"""`bench`: measure how fast several kinds of reads are on this machine.

The command does not share code with other commands.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.cli.open import open_table
from lance_duck.cli.show import show
from lance_duck.errors import InvalidInputError
from lance_duck.scan.nearest.options import vector_column

_TAKEN: Final = 100  # number of random rows to take
_NEIGHBORS: Final = 10
_COLUMNS: Final = ("what", "rows", "ms", "rows_per_second")

Reading = Callable[[], int]
"""A read that returns its row count."""


def bench(
    table: str, condition: str | None = None, runs: int = 3, version: int | None = None, as_json: bool = False
) -> None:
    """Time a scan, a filtered scan, a take and a search. Prints medians of several runs, after a warm-up run."""
    readings = dict(_readings(open_table(table, version), condition))
    show((_timed(what, read, runs) for what, read in readings.items()), _COLUMNS, as_json)


def _readings(dataset: ld.LanceDataset, condition: str | None) -> Iterator[tuple[str, Reading]]:
    """Yield the name and function of each kind of read that the table supports."""
    count = dataset.count_rows()
    if not count:
        raise InvalidInputError("nothing to read", where=dataset.uri, expected="a table with rows", found="none")
    places = np.sort(np.random.default_rng(0).integers(0, count, _TAKEN))
    yield "scan", lambda: sum(batch.num_rows for batch in dataset.to_batches())
    if condition is not None:
        yield f"scan where {condition}", lambda: sum(batch.num_rows for batch in dataset.to_batches(filter=condition))
    yield "take of random rows", lambda: len(dataset.take(places))
    for field in dataset.schema:
        if pa.types.is_fixed_size_list(field.type) and _is_searched(dataset, field.name):
            yield f"search of {field.name}", _search(dataset, field.name)


def _is_searched(dataset: ld.LanceDataset, name: str) -> bool:
    """Return whether a column holds one vector per row."""
    try:
        vector_column(dataset.handle.table, name)
    except ld.LanceDuckError:
        return False
    return True


def _search(dataset: ld.LanceDataset, name: str) -> Reading:
    """Return a search that uses the first vector of a column as the query, or zeros if the first row is null."""
    (first,) = dataset.take([0], [name]).column(0).to_pylist()
    size = dataset.schema.field(name).type.list_size
    nearest = {"column": name, "q": [0] * size if first is None else first, "k": _NEIGHBORS}
    return lambda: len(dataset.to_table(["_rowid", "_distance"], nearest=nearest))


def _timed(what: str, read: Reading, runs: int) -> dict[str, Any]:
    read()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        rows = read()
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times)
    return {"what": what, "rows": rows, "ms": round(seconds * 1e3, 3), "rows_per_second": round(rows / seconds)}
