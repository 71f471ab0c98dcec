"""Write a table with HNSW indexes with an old pylance, in whose environment this runs: `python old_graphs.py TABLE`."""

from __future__ import annotations

import sys

import lance
import numpy as np
import pyarrow as pa

ROWS, DIM = 400, 4


def main(place: str) -> None:
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(8, DIM)) * 4
    vectors = (centers[rng.integers(0, 8, ROWS)] + rng.normal(size=(ROWS, DIM))).astype("float32")
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    table = pa.table({"id": pa.array(np.arange(ROWS)), "near_flat": column, "near_sq": column})
    dataset = lance.write_dataset(table, place, data_storage_version="2.1")
    dataset.create_index("near_flat", "IVF_HNSW_FLAT", num_partitions=3)
    dataset.create_index("near_sq", "IVF_HNSW_SQ", num_partitions=3)


if __name__ == "__main__":
    main(sys.argv[1])
