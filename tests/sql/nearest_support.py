"""The same vectors as Lance tables with an index and as native tables, for nearest-row joins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import lance_duck as ld

DIM = 3
Pair = tuple[ld.Connection, duckdb.DuckDBPyConnection]


def vector_table(rows: int, seed: int, *, ties: bool = False) -> pa.Table:
    """Return rows with random vectors; with `ties`, many are equally far from each other."""
    rng = np.random.default_rng(seed)
    vectors = (rng.integers(-3, 4, (rows, DIM)) if ties else rng.normal(size=(rows, DIM))).astype(np.float32)
    vectors[(vectors == 0).all(axis=1)] = 1
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "label": pa.array(rng.integers(0, 3, rows), pa.int32()),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
        }
    )


@contextmanager
def nearest_pair(folder: Path, *, ties: bool = False) -> Iterator[Pair]:
    """Connect to `t` with 500 mostly indexed rows, `lq` with 12 queries and `small` with 4 rows.

    On both connections, `q` is a native table with the queries.
    """
    rows, queries, few = (vector_table(*sizes, ties=ties) for sizes in ((500, 1), (12, 2), (4, 3)))
    dataset = ld.write_dataset(rows[:400], folder / "t.lance", max_rows_per_file=150)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=4)
    dataset.insert(rows[400:])
    ld.write_dataset(queries, folder / "lq.lance")
    ld.write_dataset(few, folder / "small.lance")
    with ld.connect(folder, config={"lance_nprobes": 1000}) as ours, duckdb.connect() as theirs:
        theirs.execute("CREATE TABLE t AS FROM rows")
        theirs.execute("CREATE TABLE lq AS FROM queries")
        theirs.execute("CREATE TABLE small AS FROM few")
        for each in (ours, theirs):
            each.execute("CREATE TABLE q AS SELECT id AS n, label AS l, vec AS v FROM queries")
        yield ours, theirs
