"""How fast is JOIN … NEAREST BY, through an index and exact, compared with DuckDB's native joins?

DuckDB compares all pairs, in a native NEAREST BY since version 2.0, and in a cross join with a window.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report

OWN, CROSS = "native NEAREST BY", "native cross join"
KNOWS_NEAREST = not duckdb.__version__.startswith("1.")
DISTANCE = "array_distance(q.vec, t.vec)"
JOINS = {
    "one query, approximate": (1, "APPROX"),
    "one query, exact": (1, "EXACT"),
    "100 queries, approximate": (100, "APPROX"),
    "100 queries, exact": (100, "EXACT"),
}
WINDOW = f"""
    SELECT q.id, t.id FROM q CROSS JOIN t
    QUALIFY row_number() OVER (PARTITION BY q.id ORDER BY {DISTANCE}) <= {{k}}"""


def vectors(rows: int, dimension: int, seed: int) -> pa.Table:
    """Return rows with vectors around a thousand centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(1000, dimension))
    values = centres[rng.integers(0, 1000, rows)] + rng.normal(scale=0.3, size=(rows, dimension))
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.astype(np.float32).ravel()), dimension)
    return pa.table({"id": np.arange(rows), "vec": column})


def asker(connection: Any, sql: str) -> Callable[[], object]:
    """Return a function that runs a statement and fetches its rows."""
    return lambda: connection.execute(sql).fetchall()


def main() -> None:
    """Compare the joins, for one query and for many."""
    parser = options((__doc__ or "").split("\n")[0], rows=100_000)
    parser.add_argument("--dimension", type=int, default=32, help="of the vectors")
    parser.add_argument("--k", type=int, default=10, help="rows for each query")
    add_clock(parser)
    arguments = parser.parse_args()
    data = vectors(arguments.rows, arguments.dimension, 1)
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        ld.write_dataset(data, Path(folder) / "t.lance").create_index("vec", "IVF_FLAT", num_partitions=256)
        for name in chosen(JOINS, arguments.only):
            count, how = JOINS[name]
            queries = vectors(count, arguments.dimension, 2)
            with ld.connect(folder) as ours, duckdb.connect() as native:
                native.execute("CREATE TABLE t AS FROM data")
                for connection in (ours, native):
                    connection.register("queries", queries)
                    connection.execute("CREATE TABLE memory.main.q AS FROM queries")
                join = f"SELECT q.id, t.id FROM q JOIN t {{}} NEAREST {arguments.k} BY DISTANCE {DISTANCE}"
                contestants = {
                    OURS: asker(ours, join.format(how)),
                    CROSS: asker(native, WINDOW.format(k=arguments.k)),
                }
                if KNOWS_NEAREST:
                    contestants[OWN] = asker(native, join.format(how))
                cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Join with the nearest {arguments.k} of {arguments.rows:,} vectors", cases, arguments)


if __name__ == "__main__":
    main()
