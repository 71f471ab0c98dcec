"""How fast are the 22 queries of TPC-H, compared with Parquet, with pylance's dataset and with native tables?

`--floors` also measures two parts of each query in processor time: reading its columns without DuckDB, and running
DuckDB on the same columns in memory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import lance
import pyarrow as pa
import pyarrow.parquet as pq

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, chosen, clock_of, options, race, report
from lance_duck.duck.tables.scan_observer import Scan, watching
from lance_duck.duck.tables.table import ROWS
from lance_duck.scan.duckdb.types import duckdb_arrow_schema

QUERIES = Path(__file__).parents[1] / "tests" / "golden" / "tpch" / "queries"
OTHERS: Final = {"count column": "SELECT count(l_extendedprice) FROM lineitem"}
"""Further queries, which run only if `--only` names them."""
PEERS: Final = {"parquet": "Parquet", "pylance": "pylance", "native": "native table"}
"""Values of `--peers`, and the names in the tables."""
TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")


def prepare(scale: float) -> Path:
    """Write the tables of TPC-H's own generator as Parquet and as Lance under the data folder, once."""
    folder = DATA / f"tpch-{scale:g}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lance").mkdir(parents=True)
    generator = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([generator, "parquet", "-s", f"{scale:g}", "--output-dir", folder / "parquet"], check=True)
    for name in TABLES:
        file = pq.ParquetFile(folder / "parquet" / f"{name}.parquet")
        lance.write_dataset(file.iter_batches(), folder / "lance" / f"{name}.lance", schema=file.schema_arrow)
    (folder / "complete").touch()
    return folder


def connections(folder: Path, peers: list[str]) -> dict[str, object]:
    """Return a connection per contestant with the eight tables."""
    found: dict[str, object] = {OURS: ld.connect(str(folder / "lance"))}
    for peer in peers:
        found[PEERS[peer]] = connection = duckdb.connect()
        for name in TABLES:
            if peer == "pylance":
                connection.register(name, lance.dataset(str(folder / "lance" / f"{name}.lance")))
            else:
                kind = "VIEW" if peer == "parquet" else "TABLE"
                connection.execute(f"CREATE {kind} {name} AS FROM '{folder / 'parquet' / name}.parquet'")
    return found


def floors(query: str, ours: Any) -> dict[str, Callable[[], object]]:
    """Return two parts of a query: reading its columns, and running DuckDB on these columns in memory.

    Args:
        query: The statement.
        ours: The connection whose scans are observed.
    """
    with watching() as watch:
        ours.execute(query).fetchall()
    scans = [scan for scan in watch.scans if set(scan.columns) != {ROWS}]
    memory = duckdb.connect()
    for dataset in {scan.dataset.uri: scan.dataset for scan in scans}.values():
        names = {name for scan in scans if scan.dataset.uri == dataset.uri for name in scan.columns}
        schema = duckdb_arrow_schema(dataset.schema)
        # Includes filter columns of the scan that DuckDB does not request.
        names |= {name for name in schema.names if name in query.lower()}
        wanted = pa.schema([field for field in schema if field.name in names])
        memory.register(Path(dataset.uri).stem, dataset.duckdb_reader(wanted, None, any_form=True).read_all())

    def read() -> None:
        for scan in scans:
            for _ in _reader(scan):
                pass

    return {"reading alone": read, "Arrow in memory": lambda: memory.execute(query).fetchall()}


def _reader(scan: Scan) -> pa.RecordBatchReader:
    schema = duckdb_arrow_schema(scan.dataset.schema)
    wanted = pa.schema([schema.field(name) for name in scan.columns if name != ROWS])
    return scan.dataset.duckdb_reader(wanted, scan.predicate, any_form=True)


def main() -> None:
    """Check that all give the same answers, then race."""
    parser = options((__doc__ or "").split("\n")[0], rows=0, rounds=5)
    parser.add_argument("--floors", action="store_true", help="also measure parts of the queries")
    add_clock(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is 6 million lines")
    parser.add_argument("--peers", nargs="+", default=["parquet"], choices=PEERS)
    arguments = parser.parse_args()
    arguments.processor |= arguments.floors
    contestants = connections(prepare(arguments.scale), arguments.peers)
    cases = []
    queries = {path.stem: path.read_text(encoding="utf-8") for path in sorted(QUERIES.glob("*.sql"))}
    asked = chosen(queries, arguments.only) or chosen(OTHERS, arguments.only)
    for name in asked:
        query = {**queries, **OTHERS}[name]
        answers = [rounded(c.execute(query).fetchall()) for c in contestants.values()]  # type: ignore[attr-defined]
        assert all(answer == answers[0] for answer in answers), name
        runs = {who: lambda c=c, query=query: c.execute(query).fetchall() for who, c in contestants.items()}
        if arguments.floors:
            runs |= floors(query, contestants[OURS])
        clock = clock_of(arguments)
        cases.append(race(name, runs, arguments.rounds, clock))
    report(f"Run the 22 queries of TPC-H at scale {arguments.scale:g}", cases, arguments)


def rounded(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Round doubles to nine digits, because sums in another order differ in the last ones."""
    return [tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows]


if __name__ == "__main__":
    main()
