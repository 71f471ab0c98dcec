"""What recall do searches with default settings reach, and how fast are they?

Both libraries build an index with equal partitions and codes over the same clustered vectors. Each one searches it
with its own defaults. The queries come from the same clusters, and are not rows.
"""

from __future__ import annotations

import time

import faiss
import numpy as np

from benchmarks._harness import OURS, Case, options, report
from benchmarks._vector_data import BATCH, Data, K
from benchmarks._vector_engines import KINDS, LIBRARIES, Engine, engine
from benchmarks.vectors import one_by_one


def main() -> None:
    """Build, measure recall with all queries, then race."""
    parser = options((__doc__ or "").split("\n")[0], rows=None, rounds=15)
    parser.add_argument("--sizes", nargs="+", default=("100000x128",), help="rows, and numbers of a vector")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=("IVF_PQ",), help="indexes")
    parser.add_argument("--rebuild", action="store_true", help="build the index of pylance, too, though kept")
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    cases: list[Case] = []
    for data in map(Data.of, arguments.sizes):
        near = faiss.knn(data.queries, data.vectors, K)[1]
        for kind in arguments.kinds:
            contestants = [engine(name, data, kind) for name in LIBRARIES]
            for each in contestants:
                each.prepare(arguments.rebuild or each.name == OURS)
            shares = {each.name: recall(each, near) for each in contestants}
            cases.append(one_by_one(f"{kind}, {data}", contestants, None, arguments.rounds, time.process_time))
            for name, share in shares.items():
                rate = 1 / cases[-1].median(name)
                print(
                    f"{cases[-1].name}, {name}: recall {share:.3f} of {BATCH:,} queries, {rate:,.0f} a second",
                    flush=True,
                )
    report(f"Search for the nearest {K} with default settings", cases, arguments)


def recall(each: Engine, near: np.ndarray) -> float:
    """Return the share of the nearest rows that searches find, on average."""
    found = (np.intersect1d(each.search(query), mine) for query, mine in zip(each.data.queries, near, strict=True))
    return float(np.mean([len(rows) / len(mine) for rows, mine in zip(found, near, strict=True)]))


if __name__ == "__main__":
    main()
