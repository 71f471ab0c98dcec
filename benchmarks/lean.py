"""How much time does lean compilation save, and are its kernels as fast as numba's default ones?

The first table compares warm-ups with an empty kernel folder, in processor time. The second one runs the same work
with the kernels of each method. A ratio divides lean by default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import geometric_mean
from benchmarks._texts import texts
from lance_duck.kernels.notice import first_use
from lance_duck.precompile.workload import run_workload

WAYS = ("lean", "numba")
ROWS = 100_000
REPEATS = 5


def warm_up() -> dict[str, float]:
    """Run the workload, and return its processor time and the number of compiled kernels."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run_workload(folder)
    return {"seconds": time.process_time() - start, "kernels": first_use.compiled}


def work() -> dict[str, float]:
    """Least processor seconds of each case in this process."""
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "fare": np.round(random.random(ROWS) * 100, 2),
            "small": random.integers(0, 1000, ROWS, np.int32),
            "name": [f"name {i * 7919 % ROWS} of {i}" for i in range(ROWS)],
            "city": [f"city {i % 50}" for i in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(random.random(ROWS * 64, dtype=np.float32), 64),
        }
    )
    words = pa.table({"id": np.arange(20_000), "text": texts(20_000)})
    query = random.random(64).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        ds = ld.write_dataset(table, f"{folder}/t.lance")
        documents = ld.write_dataset(words, f"{folder}/texts.lance")
        documents.create_scalar_index("text", "INVERTED")
        first, *rest = (str(text) for text in words["text"].slice(5, 20).to_pylist())
        terms = [text.split()[0] for text in (first, *rest)]
        nearest = {"column": "v", "q": query, "k": 10}
        cases: dict[str, Callable[[], Any]] = {
            "write": lambda: ld.write_dataset(table.drop(["v"]), f"{folder}/w.lance", mode="overwrite"),
            "scan": lambda: ld.dataset(f"{folder}/t.lance").to_table(columns=["id", "fare", "small", "name", "city"]),
            "filter": lambda: ld.dataset(f"{folder}/t.lance").to_table(
                columns=["id"], filter="fare > 20 AND small < 700 AND city = 'city 7'"
            ),
            "exact nearest": lambda: ds.to_table(nearest=nearest, columns=["id"]),
            "text index": lambda: documents.create_scalar_index("text", "INVERTED", replace=True),
            "text search, 1 term": lambda: [
                documents.to_table(full_text_query=term, columns=["id"], limit=10) for term in terms
            ],
            "text search, 3 terms": lambda: [
                documents.to_table(full_text_query=" ".join(three), columns=["id"], limit=10)
                for three in zip(terms, terms[1:], terms[2:], strict=False)
            ],
        }
        return {name: min(_seconds(case) for _ in range(REPEATS)) for name, case in cases.items()}


def _seconds(case: Callable[[], Any]) -> float:
    start = time.process_time()
    case()
    return time.process_time() - start


def _child(way: str, folder: str, code: str) -> dict[str, float]:
    """Run code in a process whose kernels are in one folder, compiled in one way."""
    Path(folder).mkdir(exist_ok=True)
    environment = {**os.environ, "LANCE_DUCK_QUIET": "1", "LANCE_DUCK_KERNELS": "compile"}
    script = f"""
import json
from pathlib import Path
from lance_duck.kernels import cache, lean
cache.cache_folders = lambda: (Path({folder!r}),)
lean.is_tested = lambda: {way == "lean"}
from benchmarks import lean as benchmark
print(json.dumps(benchmark.{code}))
"""
    run = subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def _in_turns(round_: int) -> tuple[str, ...]:
    return WAYS if round_ % 2 == 0 else WAYS[::-1]


def _warm_ups(rounds: int, folder: str) -> None:
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for round_ in range(rounds):
        for way in _in_turns(round_):
            kernels = Path(f"{folder}/{way}-{round_}")
            runs[way].append(_child(way, str(kernels), "warm_up()"))
            runs[way][-1]["MB"] = sum(path.stat().st_size for path in kernels.iterdir()) / 1e6
    for way, figures in runs.items():
        seconds = " ".join(f"{figure['seconds']:.1f}" for figure in figures)
        kept = f"{figures[0]['kernels']:.0f} kernels and subroutines, {figures[0]['MB']:.1f} MB on disk"
        print(f"warm-up, {way:8}{seconds:>24} s   {kept}", flush=True)
    ratios = [one["seconds"] / other["seconds"] for one, other in zip(*runs.values(), strict=True)]
    print(f"{'ratio':17}{median(ratios):24.2f}")


def _works(rounds: int, folder: str) -> None:
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for way in WAYS:
        _child(way, f"{folder}/{way}-0", "work()")
    for round_ in range(rounds):
        for way in _in_turns(round_):
            runs[way].append(_child(way, f"{folder}/{way}-0", "work()"))
    ratios = []
    for name in runs["lean"][0]:
        pairs = [(one[name], other[name]) for one, other in zip(*runs.values(), strict=True)]
        ratios.append(median(one / other for one, other in pairs))
        least = [min(times) * 1e3 for times in zip(*pairs, strict=True)]
        print(f"{name:24}{least[0]:10.1f} ms{least[1]:10.1f} ms{ratios[-1]:10.2f}")
    print(f"{'geometric mean':24}{geometric_mean(ratios):36.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm-ups", type=int, default=3, help="rounds of the first table; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the second table; 0 leaves it out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.warm_ups:
            _warm_ups(arguments.warm_ups, folder)
        if arguments.rounds:
            _works(arguments.rounds, folder)


if __name__ == "__main__":
    main()
