"""How fast are the few rows read that a filter keeps, in Python and in SQL?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report, touch

DISTINCT = (10, 1_000, 5_000, 100_000)
"""Distinct values of the string columns."""

PARTS = (0.0005, 0.01, 0.2)
"""Shares of the rows that a filter keeps. DuckDB evaluates the filter itself for a fifth."""

PICKED = 1 << 20
DIMENSION = 32
ROWS_OF_A_FILE = 250_000


def texts(distinct: int, count: int, rng: np.random.Generator) -> pa.Array:
    """Return strings of 20 bytes with this number of distinct values."""
    words = pa.array([f"driver number {i:06d}" for i in range(distinct)])
    return words.take(pa.array(rng.integers(0, distinct, count)))


def columns(count: int) -> pa.Table:
    """Return the table: `pick`, evenly between 0 and `PICKED`, and a column of each kind."""
    rng = np.random.default_rng(1)
    few = {f"string, {distinct:,} values": texts(distinct, count, rng) for distinct in DISTINCT}
    edges = pa.array(np.arange(count + 1, dtype=np.int32) * 3)
    vectors = pa.array(rng.random(count * DIMENSION, np.float32))
    return pa.table(
        {
            "pick": rng.integers(0, PICKED, count).astype(np.int32),
            **few,
            "dictionary, 5,000 values": texts(5_000, count, rng).dictionary_encode(),
            "string, all distinct": pa.array([f"row {i} of the table" for i in range(count)]),
            "number": rng.integers(0, 1 << 40, count),
            "list": pa.ListArray.from_arrays(edges, pa.array(rng.integers(0, 1000, 3 * count))),
            "struct with a string": pa.StructArray.from_arrays(
                [texts(5_000, count, rng), rng.random(count)], ["s", "x"]
            ),
            "vector": pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
        }
    )


def write(data: pa.Table, folder: str) -> dict[str, str]:
    """Write the table with both libraries, and return the paths."""
    places = {writer: str(Path(folder) / f"{writer}.lance") for writer in (OURS, "pylance")}
    ld.write_dataset(data, places[OURS], max_rows_per_file=ROWS_OF_A_FILE)
    lance.write_dataset(data, places["pylance"], max_rows_per_file=ROWS_OF_A_FILE)
    return places


def python_scan(dataset: Any, column: str, most: int) -> Callable[[], int]:
    """Return a scan through the dataset's batches."""
    return lambda: touch(dataset.to_batches(columns=[column], filter=f"pick < {most}"))


def sql_scan(dataset: Any, column: str, most: int) -> Callable[[], int]:
    """Return a scan through a query."""
    connection = duckdb.connect()
    connection.register("t", dataset)
    query = f'SELECT "{column}" FROM t WHERE pick < {most}'
    return lambda: sum(batch.num_rows for batch in _batches(connection.sql(query)))


def _batches(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    reader = relation.to_arrow_reader() if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader()
    yield from reader


SCANS = {"Python": python_scan, "SQL": sql_scan}


def main() -> None:
    """Scan each column with each filter, by both implementations, from tables that each of them wrote."""
    parser = options(__doc__ or "", rows=1_000_000, rounds=5)
    add_clock(parser)
    arguments = parser.parse_args()
    data = columns(arguments.rows)
    names = [name for name in data.column_names if name != "pick"]
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            writer: {OURS: ld.dataset(place), "pylance": lance.dataset(place)}
            for writer, place in write(data, folder).items()
        }
        del data
        cases = {
            f"{name}, {part * 100:g} %, {how}, written by {writer}": (name, part, how, writer)
            for how, writer, part, name in product(SCANS, tables, PARTS, names)
        }
        found = []
        for label in chosen(cases, arguments.only):
            name, part, how, writer = cases[label]
            runs = {who: SCANS[how](dataset, name, int(part * PICKED)) for who, dataset in tables[writer].items()}
            assert len({run() for run in runs.values()}) == 1, label
            found.append(race(label, runs, arguments.rounds, clock_of(arguments)))
    report(f"Read the rows that a filter keeps of {arguments.rows:,}", found, arguments)


if __name__ == "__main__":
    main()
