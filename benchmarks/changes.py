"""How long do delete, update and merge of 1 % of a table take, flushed to the disk and not flushed?"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, report

PEER = "pylance"
FLUSHED, LAZY = "flushed", "not flushed"
NOTE = "pylance does not flush files to the disk."


def main() -> None:
    """Make each change on new copies of a table, whose data files are hard links."""
    parser = options(__doc__ or "", rows=5_000_000)
    parser.add_argument("--stable-row-ids", action="store_true", help="of the table")
    add_clock(parser)
    arguments = parser.parse_args()
    data, clock = table(arguments.rows), clock_of(arguments)
    names = chosen([f"{verb}, {how}" for verb in verbs(data) for how in (LAZY, FLUSHED)], arguments.only)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
        original = Path(folder) / "t"
        lance.write_dataset(data, original, enable_stable_row_ids=arguments.stable_row_ids)
        verb = {name: verbs(data)[name.rpartition(",")[0]] for name in names}
        cases = [change(name, verb[name], original, arguments.rounds, clock) for name in names]
    report(f"Change 1 % of {arguments.rows:,} rows", cases, arguments, NOTE)


def table(rows: int) -> pa.Table:
    """Return rows with ascending keys, and a column with 100 values in random order."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.arange(rows),
            "part": rng.permutation(np.arange(rows, dtype=np.int32) % 100),
            "price": rng.random(rows),
            "name": pa.array(np.char.add("name-", rng.integers(0, 1_000_000, rows).astype(str))),
        }
    )


def verbs(data: pa.Table) -> dict[str, Callable[[Any], object]]:
    """Return each change as a function of a dataset."""
    hundredth = data.take(pa.array(np.arange(7, data.num_rows, 100)))
    by_name = hundredth.slice(0, 10_000).select(["name", "price"])
    by_name = by_name.take(pa.array(np.unique(by_name["name"].to_numpy(zero_copy_only=False), return_index=True)[1]))
    fresh = hundredth.set_column(0, "id", pa.array(np.arange(hundredth.num_rows) + data.num_rows))
    half_new = pa.concat_tables([hundredth.slice(0, hundredth.num_rows // 2), fresh.slice(hundredth.num_rows // 2)])

    def merge(ds: Any, on: str) -> Any:
        return ds.merge_insert(on).when_matched_update_all()

    return {
        "delete": lambda ds: ds.delete("part = 7"),
        "update": lambda ds: ds.update({"price": "price * 2"}, where="part = 7"),
        "merge": lambda ds: merge(ds, "id").when_not_matched_insert_all().execute(hundredth),
        "merge, half of the rows new": lambda ds: merge(ds, "id").when_not_matched_insert_all().execute(half_new),
        "merge into two columns": lambda ds: merge(ds, "id").execute(hundredth.select(["id", "price"])),
        "merge by a string key": lambda ds: merge(ds, "name").execute(by_name),
        "insert if missing": lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(hundredth),
    }


def change(
    name: str,
    verb: Callable[[Any], object],
    original: Path,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Case:
    """Time a change on copies of a table, without copying and opening it."""
    fsync = {"fsync": "true" if name.endswith(f", {FLUSHED}") else "false"}
    openers: dict[str, Callable[[str], Any]] = {
        OURS: lambda uri: ld.dataset(uri, storage_options=fsync),
        PEER: lambda uri: lance.dataset(uri),
    }
    seconds: dict[str, list[float]] = {contestant: [] for contestant in openers}
    for turn in range(-1, rounds):
        contestants = list(openers)[:: 1 if turn % 2 else -1]
        results = {}
        for contestant in contestants:
            copy = original.with_name("copy")
            shutil.copytree(original, copy, copy_function=os.link)
            ds = openers[contestant](str(copy))
            begin = clock()
            results[contestant] = verb(ds)
            took = clock() - begin
            shutil.rmtree(copy)
            if turn >= 0:
                seconds[contestant].append(took)
        assert results[OURS] == results[PEER], results
    return Case(name, seconds)


if __name__ == "__main__":
    main()
