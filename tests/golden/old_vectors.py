"""Write a table with vector indexes with an old pylance, in whose environment this runs.

`python old_vectors.py TABLE KIND`: a column for each metric, with an index of this kind.
"""

from __future__ import annotations

import sys

import lance
import numpy as np
import pyarrow as pa

ROWS, DIM = 300, 8


def main(place: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    vectors = (rng.normal(size=(ROWS, DIM)) + 0.5).astype("float32")
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    metrics = ("l2", "cosine", "dot")
    table = pa.table({"id": pa.array(np.arange(ROWS)), **dict.fromkeys(metrics, column)})
    dataset = lance.write_dataset(table, place)
    codes = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {"num_bits": 1}
    for metric in metrics:
        dataset.create_index(metric, kind, metric=metric, num_partitions=3, **codes)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
