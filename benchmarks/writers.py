"""How many commits do four concurrent writers make, and is a change ever lost?

Each process appends rows, or changes its row by key, through one handle. Commits are counted per second of wall time
and of processor time. At the end, the table must contain every acknowledged change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import lance
import pyarrow as pa

import lance_duck as ld

WRITERS = 4
WAYS = {"append": "each appends rows", "upsert": "each changes one row by its key"}
CONTESTANTS = {"lance-duck, not flushed": "false", "lance-duck, flushed": "true", "pylance": None}


def main() -> None:
    """Print the commits and the losses of each contestant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each round")
    parser.add_argument("--only", default="", choices=["", *WAYS])
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _write(*arguments.child)
        return
    for way, words in WAYS.items():
        if arguments.only in way:
            print(f"{WRITERS} processes, {words}")
            _race(way, arguments.rounds, arguments.seconds)


def _race(way: str, rounds: int, seconds: float) -> None:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for turn in range(rounds):
        names = [*CONTESTANTS][turn % 3 :] + [*CONTESTANTS][: turn % 3]
        for name in names:
            with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
                runs[name].append(_run(name, way, seconds, Path(folder) / "t.lance"))
    columns = ("commits", "a second", "a second of processor", "gave up", "lost")
    print(f"{'':28}" + "".join(f"{column:>24}" for column in columns) + f"{'of pylance, processor':>24}")
    for name, figures in runs.items():
        ratios = [
            a["a second of processor"] / b["a second of processor"]
            for a, b in zip(figures, runs["pylance"], strict=True)
        ]
        cells = [median(figure[column] for figure in figures) for column in columns]
        print(f"{name:28}" + "".join(f"{cell:>24,.1f}" for cell in [*cells, median(ratios)]))


def _write(library: str, fsync: str, way: str, seconds: str, number: str, path: str) -> None:
    """Change the table until the time is over."""
    module: Any = {"lance": lance, "lance_duck": ld}[library]
    settings = {} if library == "lance" else {"storage_options": {"fsync": fsync}}
    table = module.dataset(path, **settings)
    own = int(number)
    done = given_up = 0
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    stop = time.monotonic() + float(seconds)
    while time.monotonic() < stop:
        try:
            if way == "append":
                rows = pa.table({"id": [WRITERS + own + WRITERS * done], "n": [1]})
                table = module.write_dataset(rows, table, mode="append", **settings)
            else:
                row = pa.table({"id": [own], "n": [done + 1]})
                table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)
        except Exception:  # conflicts have other classes in each library
            given_up += 1
            table = module.dataset(path, **settings)
        else:
            done += 1
    print(json.dumps({"commits": done, "gave up": given_up, "processor": time.process_time() - began}))


def _run(name: str, way: str, seconds: float, path: Path) -> dict[str, float]:
    """Let four processes change a new table, and count."""
    lance.write_dataset(pa.table({"id": range(WRITERS), "n": [0] * WRITERS}), str(path))
    library = "lance" if name == "pylance" else "lance_duck"
    command = [
        sys.executable,
        "-m",
        "benchmarks.writers",
        "--child",
        library,
        str(CONTESTANTS[name]),
        way,
        str(seconds),
    ]
    children = [
        subprocess.Popen([*command, str(i), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(WRITERS)
    ]
    for child in children:  # each has imported its library and opened the table
        assert child.stdout is not None
        child.stdout.readline()
    begin = time.perf_counter()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    answers = [json.loads(child.communicate()[0]) for child in children]
    elapsed = time.perf_counter() - begin
    commits = sum(answer["commits"] for answer in answers)
    table = ld.dataset(str(path)).to_table()
    held = table.num_rows - WRITERS if way == "append" else sum(table["n"].to_pylist())
    return {
        "commits": commits,
        "a second": commits / elapsed,
        "a second of processor": commits / sum(answer["processor"] for answer in answers),
        "gave up": sum(answer["gave up"] for answer in answers),
        "lost": commits - held,
    }


if __name__ == "__main__":
    main()
