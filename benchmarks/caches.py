"""How much time do the caches of decoded columns and prepared searches save?"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, chosen, options, race, report
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.read.take import Taker

OFF = "off"
TAKES = 200
SEARCHES = 50
DIM = 64
INDEXES: dict[str, dict[str, Any] | None] = {
    "flat": None,
    "IVF_FLAT": {"num_partitions": 64},
    "IVF_PQ": {"num_partitions": 64, "num_sub_vectors": 16},
    "IVF_HNSW_SQ": {"num_partitions": 4},
}
NARROW = {"int64": pa.int64(), "float32": pa.float32(), "int8": pa.int8()}


def main() -> None:
    """Race each cache against the same work without it."""
    arguments = options(__doc__ or "", rows=1_000_000, rounds=15).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases = takes(folder, arguments.rows, arguments.rounds, arguments.only)
        cases += searches(folder, min(arguments.rows, 100_000), arguments.rounds, arguments.only)
    report("Caches, on against off", cases, arguments)


def takes(folder: str, rows: int, rounds: int, only: str) -> list[Case]:
    """Take random rows from narrow columns, with and without the cache."""
    rng = np.random.default_rng(0)
    data = pa.table({name: pa.array(rng.integers(0, 100, rows)).cast(type_) for name, type_ in NARROW.items()})
    dataset = ld.write_dataset(data, str(Path(folder) / "narrow.lance"), max_rows_per_file=rows // 4)
    table = dataset.handle.table
    takers = {OURS: Taker(table.snapshot, ColumnCache()), OFF: Taker(table.snapshot, ColumnCache(), cache_bytes=0)}
    cases = []
    for name in chosen([f"take {c} of {n}" for c in (1, 10, 100, 1000) for n in (*NARROW, "all")], only):
        count, column = int(name.split()[1]), name.split()[-1]
        projection = table.projection(None if column == "all" else [column])
        draws = [rng.integers(0, rows, count) for _ in range(TAKES)]

        def run(taker: Taker, draws: Any = draws, projection: Any = projection) -> Callable[[], object]:
            return lambda: [taker.by_position(each, projection) for each in draws]

        cases.append(race(name, {label: run(taker) for label, taker in takers.items()}, rounds))
    return cases


def searches(folder: str, rows: int, rounds: int, only: str) -> list[Case]:
    """Search for one query at a time, with the search prepared once, and prepared each time."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((rows, DIM)).astype(np.float32)
    data = pa.table({"id": np.arange(rows), "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)})
    cases = []
    for name in chosen([f"search, {index}{more}" for index in INDEXES for more in ("", ", filter")], only):
        kind = name.split(", ")[1]
        path = Path(folder) / f"{kind}.lance"
        if not path.exists():
            dataset = ld.write_dataset(data, str(path))
            if (index := INDEXES[kind]) is not None:
                dataset.create_index("v", kind, **index)
        handle = ld.dataset(str(path))
        given: dict[str, Any] = {"filter": "id % 2 = 0"} if name.endswith("filter") else {}
        queries = itertools.cycle(rng.standard_normal((SEARCHES, DIM)).astype(np.float32))
        many = 4 if kind == "flat" else SEARCHES

        def on(handle: Any = handle, given: Any = given, queries: Any = queries, many: int = many) -> None:
            for _ in range(many):
                handle.to_table(columns=["id"], nearest={"column": "v", "q": next(queries), "k": 10}, **given)

        def off(handle: Any = handle, given: Any = given, queries: Any = queries, many: int = many) -> None:
            for _ in range(many):
                nearest = {"column": "v", "q": next(queries), "k": 10}
                handle.scanner(columns=["id"], nearest=nearest, **given).to_table()

        cases.append(race(name, {OURS: on, OFF: off}, rounds))
    return cases


if __name__ == "__main__":
    main()
