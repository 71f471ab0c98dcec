"""What does each row of an index search cost: a scanned row, a graph step, a ranked row?

`lance_duck/scan/costs.py` stores these prices, and searches use them to choose settings. A price is the difference
between a narrow and a wide search, divided by the additional rows. Two vector widths separate the price of a row from
the price of a byte. The clock is processor time.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import machine, options
from lance_duck.scan import costs

ROWS: Final = 50_000
DIMS: Final = (64, 512)
K: Final = 10
QUERIES: Final = 48  # a round
PARTITIONS: Final = (10, 100)
RANKED: Final = (100, 1_000)
WALKED: Final = (64, 512)

Prices = dict[int, float]


def main() -> None:
    """Print each constant with its measured value."""
    arguments = options((__doc__ or "").split("\n")[0], ROWS).parse_args()
    print(machine())
    for name, measured, what in constants(arguments.rows, arguments.rounds):
        print(f"{name}: {getattr(costs, name):,.2f}, measured {measured:,.3f} ({what})", flush=True)


def constants(rows: int, rounds: int) -> Iterator[tuple[str, float, str]]:
    """Yield each constant's name, its measured value, and the measurements behind it."""
    vectors, codes, tables, ranked, walked = Prices(), Prices(), Prices(), Prices(), Prices()
    fast_codes, fast_tables = Prices(), Prices()
    least = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for dim in DIMS:
            ds = table(Path(folder), rows, dim)
            flat = ds.create_index("v", "IVF_FLAT", num_partitions=PARTITIONS[0], replace=True)
            few, every = costs_of(flat, [{"nprobes": 1}, {"nprobes": PARTITIONS[0]}], rounds)
            vectors[4 * dim] = (every - few) / (rows * (1 - 1 / PARTITIONS[0]))
            whole = []
            for count in PARTITIONS:
                coded = ds.create_index("v", "IVF_PQ", num_partitions=count, num_sub_vectors=dim // 4, replace=True)
                again = [{"nprobes": count, "refine_factor": number // K} for number in RANKED]
                settings = [{"nprobes": 1}, {"nprobes": count}, *again]
                one, every, less, more = costs_of(coded, settings, rounds)
                whole.append(every)
            least = least or one
            tables[dim << 10] = (whole[1] - whole[0]) / (PARTITIONS[1] - PARTITIONS[0])
            codes[dim // 4] = (whole[0] - one - PARTITIONS[0] * tables[dim << 10]) / rows
            ranked[4 * dim] = (more - less) / (RANKED[1] - RANKED[0])
            whole = []
            for count in PARTITIONS:
                ds.create_index("v", "IVF_PQ", num_partitions=count, num_bits=4, replace=True)
                one, every = costs_of(ds, [{"nprobes": 1}, {"nprobes": count}], rounds)
                whole.append(every)
            fast_tables[dim << 6] = (whole[1] - whole[0]) / (PARTITIONS[1] - PARTITIONS[0])
            fast_codes[dim // 4] = (whole[0] - one - PARTITIONS[0] * fast_tables[dim << 6]) / rows
            graph = ds.create_index("v", "IVF_HNSW_SQ", num_partitions=1, replace=True)
            less, more = costs_of(graph, [{"ef": ef} for ef in WALKED], rounds)
            walked[dim] = (more - less) / (WALKED[1] - WALKED[0])
    yield "ROW_BYTE_NS", slope(vectors), shown(vectors)
    yield "TABLE_BYTE_NS", slope(tables), shown(tables)
    yield "FAST_CODE_BYTE_NS", slope(fast_codes), shown(fast_codes)
    yield "FAST_TABLE_BYTE_NS", slope(fast_tables), shown(fast_tables)
    for name, prices in {"CODE": codes, "CANDIDATE": ranked, "WALK": walked}.items():
        width, price = next(iter(prices.items()))
        yield f"{name}_NS", price - width * slope(prices), shown(prices)
        yield f"{name}_BYTE_NS", slope(prices), "the same"
    yield "FREE_NS", least, f"a search of one of {PARTITIONS[1]} partitions"


def table(folder: Path, rows: int, dim: int) -> ld.LanceDataset:
    """Write clustered vectors."""
    rng = np.random.default_rng(dim)
    centers = rng.standard_normal((rows // 500, dim), np.float32)
    values = centers[rng.integers(0, len(centers), rows)] + 0.5 * rng.standard_normal((rows, dim), np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), dim)
    return ld.write_dataset(pa.table({"v": vectors}), folder / f"{dim}.lance")


def costs_of(ds: ld.LanceDataset, settings: list[dict[str, Any]], rounds: int) -> list[float]:
    """Return nanoseconds per query for each setting. The first round is not counted."""
    queries = ds.take(range(QUERIES), columns=["v"])["v"].combine_chunks().flatten().to_numpy()
    seconds: list[list[float]] = [[] for _ in settings]
    for _, (setting, mine) in itertools.product(range(rounds + 1), zip(settings, seconds, strict=True)):
        begin = time.process_time()
        for query in queries.reshape(QUERIES, -1):
            ds.to_table(columns=["_distance"], nearest={"column": "v", "q": query, "k": K, **setting})
        mine.append((time.process_time() - begin) / QUERIES * 1e9)
    return [statistics.median(mine[1:]) for mine in seconds]


def slope(prices: Prices) -> float:
    """Return nanoseconds per byte, from prices at two widths."""
    (narrow, less), (wide, more) = prices.items()
    return (more - less) / (wide - narrow)


def shown(prices: Prices) -> str:
    """Return the prices as text."""
    return ", ".join(f"{price:,.1f} with {width:,} bytes" for width, price in prices.items())


if __name__ == "__main__":
    main()
