"""How long do 300,000 rows take that arrive ten at a time?

Each contestant stores all rows in a new table: `stream_writer` with one commit per interval, and the others with one
INSERT of ten rows after the other. The peer is DuckLake with its own catalog file, if DuckDB can load the extension:
from the package `duckdb-extension-ducklake`, which requires a certain version of DuckDB, or after `INSTALL ducklake`.
Otherwise, it is a native DuckDB file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, alternate, clock_of, options, report

INSERT, NATIVE, DUCKLAKE = "lance-duck, INSERT", "native file, INSERT", "DuckLake, INSERT"
COLUMNS = "id BIGINT, name VARCHAR, price DOUBLE, n INTEGER"
NOTE = (
    "lance-duck is `stream_writer`. All flush their commits to the disk. DuckLake keeps small inserts in its catalog."
)
Rows = list[dict[str, Any]]
Store = Callable[[Path, Sequence[Rows]], int]


def main() -> None:
    """Store the rows with each contestant, and check their number."""
    parser = options((__doc__ or "").split("\n")[0], rows=300_000, rounds=1)
    parser.add_argument("--batch", type=int, default=10, help="rows that arrive at a time")
    add_clock(parser)
    arguments = parser.parse_args()
    batches = list(batches_of(arguments.rows, arguments.batch))
    contestants: dict[str, Store] = {OURS: streamed, INSERT: inserted}
    contestants |= {DUCKLAKE: by_ducklake} if has_ducklake() else {NATIVE: by_native}
    clock = clock_of(arguments)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn, name, store in alternate(contestants, arguments.rounds):
        some = batches if turn else batches[:20]
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
            begin = clock()
            stored = store(Path(folder), some)
            took = clock() - begin
        assert stored == sum(map(len, some)), name
        if turn:
            seconds[name].append(took)
    cases = [Case(f"{len(batches):,} batches of {arguments.batch} rows", seconds)]
    report(f"Store {arguments.rows:,} rows that arrive {arguments.batch} at a time", cases, arguments, NOTE)


def batches_of(rows: int, size: int) -> Iterator[Rows]:
    """Yield rows of common types."""
    for first in range(0, rows, size):
        yield [
            {"id": i, "name": f"name {i}", "price": i / 4, "n": i % size} for i in range(first, min(first + size, rows))
        ]


def streamed(folder: Path, batches: Sequence[Rows]) -> int:
    """Write each batch to a stream writer with its usual interval."""
    with ld.connect(folder) as con:
        con.execute(f"CREATE TABLE t ({COLUMNS})")
    with ld.stream_writer(folder / "t.lance") as stream:
        for batch in batches:
            stream.write(batch)
    return ld.dataset(folder / "t.lance").count_rows()


def inserted(folder: Path, batches: Sequence[Rows]) -> int:
    """INSERT each batch into a Lance table."""
    with ld.connect(folder) as con:
        return insert_all(con, batches)


def by_native(folder: Path, batches: Sequence[Rows]) -> int:
    """INSERT each batch into a file of DuckDB."""
    with duckdb.connect(folder / "native.duckdb") as con:
        return insert_all(con, batches)


def by_ducklake(folder: Path, batches: Sequence[Rows]) -> int:
    """INSERT each batch into a table of DuckLake."""
    with duckdb.connect() as con:
        con.execute(load_ducklake())
        con.execute(f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS lake (DATA_PATH '{folder}/files')")
        con.execute("USE lake")
        return insert_all(con, batches)


def insert_all(con: Any, batches: Sequence[Rows]) -> int:
    """INSERT each batch, and return the number of rows."""
    con.execute(f"CREATE TABLE t ({COLUMNS})")
    for batch in batches:
        values = ", ".join(f"({row['id']}, '{row['name']}', {row['price']}, {row['n']})" for row in batch)
        con.execute(f"INSERT INTO t VALUES {values}")
    return int(con.execute("SELECT count(*) FROM t").fetchall()[0][0])


def load_ducklake() -> str:
    """Return the statement that loads the extension, from its package if that is installed."""
    package = find_spec("duckdb_extension_ducklake")
    folders = package.submodule_search_locations or () if package else ()
    files = (file for folder in folders for file in Path(folder).rglob("ducklake.duckdb_extension"))
    return f"LOAD '{next(files, 'ducklake')}'"


def has_ducklake() -> bool:
    """Return whether DuckDB can load the extension."""
    with duckdb.connect() as con:
        try:
            con.execute(load_ducklake())
        except duckdb.Error:
            return False
    return True


if __name__ == "__main__":
    main()
