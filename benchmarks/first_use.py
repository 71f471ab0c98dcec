"""How long does a new installation compile kernels, and how long does the first read of a process take?

Each round starts a process without compiled kernels, a second one that finds them, and a third one after `warm_up`.
The second table compiles one small function in several ways. The third, `--starts`, measures new processes that
import a library and read a small table. The rest is imports, and the help of the command.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba.core import types

import lance_duck as ld
from benchmarks._harness import OURS, Case, alternate, options, report
from lance_duck.kernels.jit import OPTIONS
from lance_duck.kernels.notice import first_use
from lance_duck.precompile.workload import run_workload  # noqa: F401  called by the child

ROWS = 10_000
NOTE = "lance-duck loads numba with the first table, and faiss with the first vector search."


def _table() -> pa.Table:
    random = np.random.default_rng(1)
    row = np.arange(ROWS)
    return pa.table(
        {
            "id": row,
            "city": [f"city {i % 50}" for i in row],
            "name": [f"name {i * 7919 % ROWS} of the {i}" for i in row],
            "fare": random.random(ROWS) * 100,
            "maybe": pa.array([None if i % 13 == 0 else int(i) for i in row], pa.int32()),
            "tags": [["a", "b"][: i % 3] for i in row],
            "v": pa.FixedSizeListArray.from_arrays(random.random(ROWS * 16, dtype=np.float32), 16),
        }
    )


def _first_day(folder: str) -> dict[str, tuple[float, int]]:
    """Seconds and compiled kernels of each first use, in this process."""
    done: dict[str, tuple[float, int]] = {}
    table = _table()

    def step(name: str, work: Callable[[], Any]) -> Any:
        start, compiled = time.perf_counter(), first_use.compiled
        result = work()
        done[name] = time.perf_counter() - start, first_use.compiled - compiled
        return result

    ds = step("write", lambda: ld.write_dataset(table, f"{folder}/t.lance"))
    step("scan", ds.to_table)
    step("filter", lambda: ds.to_table(filter="fare > 20 AND city = 'city 7'"))
    step("take", lambda: ds.take([5, 7000, 3]))
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    step("merge", lambda: merge.execute(table.slice(5, 100)))
    step("search", lambda: ds.search([0.5] * 16, column="v", k=5))
    json_table = pa.table({"j": pa.array(['{"a": [1, "b"]}'] * 100, pa.json_())})
    ds = step("json write", lambda: ld.write_dataset(json_table, f"{folder}/j.lance"))
    step("json read", ds.to_table)
    texts = pa.table({"id": range(300), "text": [f"a ship {i} in the bay of words {i % 13}" for i in range(300)]})
    ds = ld.write_dataset(texts, f"{folder}/texts.lance")
    step("text index", lambda: ds.create_scalar_index("text", "INVERTED"))
    step("text search", lambda: ds.search("ship bay", k=3))
    return done


def _child(kernels: str, code: str) -> Any:
    """Run code in a process that loads kernels only from this folder."""
    Path(kernels).mkdir(exist_ok=True)
    environment = {**os.environ, "LANCE_DUCK_QUIET": "1", "LANCE_DUCK_KERNELS": "compile"}
    script = f"""
import json
from pathlib import Path
from lance_duck.kernels import cache
cache.cache_folders = lambda: (Path({kernels!r}),)
from benchmarks import first_use as f
print(json.dumps({code}))
"""
    run = subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def _first_uses(rounds: int) -> None:
    states: dict[str, list[dict[str, tuple[float, int]]]] = {"new": [], "second process": [], "warmed up": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for number, state in enumerate(states):
                kernels = f"{folder}/warm" if state == "warmed up" else f"{folder}/used"
                if state == "warmed up":
                    seconds, compiled = _child(kernels, "(lambda w: [w.seconds, w.compiled])(f.ld.warm_up())")
                    print(f"warm_up: {compiled} kernels in {seconds:.1f} s")
                states[state].append(_child(kernels, f"f._first_day({f'{folder}/{number}'!r})"))
    print(f"{'seconds (kernels compiled)':28}" + "".join(f"{state:>18}" for state in states))
    for name in states["new"][0]:
        cells = [f"{median(run[name][0] for run in runs):.2f} ({runs[0][name][1]})" for runs in states.values()]
        print(f"{name:28}" + "".join(f"{cell:>18}" for cell in cells))


def _wrappers(rounds: int) -> None:
    """Print CPU milliseconds for one small function, with and without external wrappers."""

    def put(out: Any, at: int, byte: int) -> int:
        out[at] = byte
        return at + 1

    signature = (types.Array(types.uint8, 1, "C"), types.int64, types.int64)
    plain = {name: value for name, value in OPTIONS.items() if name != "no_cfunc_wrapper"}
    for name, kept in {
        "as numba does": plain,
        "kernel": dict(OPTIONS),
        "subroutine": {**OPTIONS, "no_cpython_wrapper": True},
    }.items():
        times = []
        for _ in range(rounds * 5 + 2):
            start = time.thread_time()
            numba.njit(**kept)(put).compile(signature)
            times.append(time.thread_time() - start)
        print(f"{name:28}{median(times[2:]) * 1000:15.0f} ms")


START = """
import sys, time
begin = time.process_time()
import {library}
imported = time.process_time()
table = {library}.dataset(sys.argv[1])
opened = time.process_time()
{read}
print(imported - begin, opened - imported, time.process_time() - opened)
"""

READS = {
    "scan": "table.to_table()",
    "filtered scan": "table.to_table(filter=\"fare > 20 AND city = 'city 7'\")",
    "take": "table.take([5, 7000, 3])",
    "search": "table.to_table(nearest={'column': 'v', 'q': [0.5] * 16, 'k': 5})",
}


STARTED = {OURS: "lance_duck", "pylance": "lance"}


def _starts(rounds: int) -> list[Case]:
    """Time new processes that import a library, open a table and read it once. Kernels are already on disk."""
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t.lance"
        ld.write_dataset(_table(), uri)
        for name, read in READS.items():
            runs: dict[str, list[list[float]]] = {who: [] for who in STARTED}
            for turn, who, library in alternate(STARTED, rounds):
                script = [sys.executable, "-c", START.format(library=library, read=read), uri]
                out = subprocess.run(script, stdout=subprocess.PIPE, check=True, text=True).stdout
                runs[who] += [[float(figure) for figure in out.split()[:3]]] if turn else []
            cases.append(Case(f"import, open and {name}", {who: list(map(sum, parts)) for who, parts in runs.items()}))
    return cases


LIBRARIES = ("numpy", "pyarrow", "pyarrow.dataset", "numba", "duckdb")
"""What opening a table imports; pyarrow.dataset brings pandas, for pylance as well."""


def _libraries(rounds: int) -> None:
    """Print the processor seconds of each import in one process. The last line is the rest of opening a table."""
    script = """
import sys, time
from importlib import import_module
for name in sys.argv[2:]:
    begin = time.process_time()
    import_module(name)
    print(time.process_time() - begin)
import lance_duck
begin = time.process_time()
lance_duck.dataset(sys.argv[1])
print(time.process_time() - begin)
"""
    with tempfile.TemporaryDirectory() as folder:
        ld.write_dataset(_table(), f"{folder}/t.lance")
        command = [sys.executable, "-c", script, f"{folder}/t.lance", *LIBRARIES]
        runs = [
            subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
            for _ in range(rounds + 1)
        ]
    for name, seconds in zip((*LIBRARIES, "open"), zip(*runs[1:], strict=True), strict=True):
        print(f"{f'then {name}':28}{median(map(float, seconds)):>56.3f}")


def _help(rounds: int) -> None:
    """Print the processor seconds of a process that prints help, and of an empty one."""
    for name, arguments in {"lance-duck --help": ["-m", "lance_duck_command", "--help"], "python": ["-c", ""]}.items():
        times = []
        for _ in range(rounds + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{name:28}{median(times[1:]):>56.3f}")


def _by_subject() -> None:
    """Print the kernels that a warm-up without a pack compiles, and their seconds, by the subject of the notices."""
    with tempfile.TemporaryDirectory() as folder:
        subjects = _child(f"{folder}/kernels", "(f.run_workload(f.tempfile.mkdtemp()), f.first_use.by_subject)[1]")
    for name, (kernels, seconds) in subjects.items():
        print(f"{name:28}{kernels:6} kernels{seconds:8.1f} s")


def main() -> None:
    """Print the tables."""
    parser = options((__doc__ or "").split("\n")[0], rows=None, rounds=3)
    parser.set_defaults(processor=True)
    parser.add_argument("--starts", action="store_true", help="print the third table alone, whose kernels are on disk")
    parser.add_argument("--subjects", action="store_true", help="print the kernels of a warm-up by subject alone")
    arguments = parser.parse_args()
    if arguments.subjects:
        _by_subject()
        return
    rounds = arguments.rounds
    if not arguments.starts:
        _first_uses(rounds)
        _wrappers(rounds)
    report("Start a process and read a small table", _starts(rounds), arguments, NOTE)
    _libraries(rounds)
    _help(rounds)


if __name__ == "__main__":
    main()
