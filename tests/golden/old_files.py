"""Write tables with data files of version 0.1, in the environment of an old pylance.

The argument is the table path. Steps unknown to the installed version are left out.
"""

from __future__ import annotations

import sys
from typing import Any

import lance
import pyarrow as pa


def rows(start: int, stop: int, words: pa.Array) -> pa.Table:
    values = range(start, stop)
    structs = pa.list_(pa.struct([("a", pa.int16()), ("t", pa.string())]))
    return pa.table(
        {
            "id": pa.array(values, pa.int64()),
            "s": pa.array([None if i % 7 == 0 else "s" * (i % 5) for i in values], pa.string()),
            "b": pa.array([i % 3 == 0 for i in values]),
            "v": pa.array([[float(i), 1.0, 2.0, 3.0] for i in values], pa.list_(pa.float32(), 4)),
            "l": pa.array([[i] * (i % 3) for i in values], pa.list_(pa.int32())),
            "ls": pa.array([[{"a": i, "t": "x" * (i % 3)}] * (i % 3) for i in values], structs),
            "st": pa.array([{"p": i, "q": {"r": str(i)}} for i in values]),
            "at": pa.array(values, pa.timestamp("us")),
            "raw": pa.array([b"z" * (i % 4) for i in values], pa.binary()),
            "d": pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in values], pa.int32()), words),
        }
    )


def main(place: str) -> None:
    words = pa.array(["x", "yy", "z"])
    lance.write_dataset(rows(0, 50, words), place, max_rows_per_group=16, max_rows_per_file=40)
    lance.write_dataset(rows(50, 90, words), place, mode="append", max_rows_per_group=13)
    lance.dataset(place).delete("id IN (3, 4, 5, 60, 61)")
    if hasattr(lance.LanceDataset, "add_columns"):
        extra = pa.table({"id": pa.array(range(90), pa.int64()), "extra": [f"e{i}" for i in range(90)]})
        steps: list[Any] = [
            lambda table: table.merge(extra, "id"),
            lambda table: table.add_columns({"twice": "id * 2"}),
            lambda table: table.drop_columns(["b"]),
        ]
        for step in steps:
            step(lance.dataset(place))


if __name__ == "__main__":
    main(sys.argv[1])
