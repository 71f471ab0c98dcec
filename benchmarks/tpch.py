"""How fast are the 22 queries of TPC-H in DuckDB, beside the same tables in Parquet and through pylance's dataset?"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import lance
import pyarrow.parquet as pq

import lance_duck as ld
from benchmarks._harness import DATA, OURS, chosen, options, race, report

QUERIES = Path(__file__).parents[1] / "tests" / "golden" / "tpch" / "queries"
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
    """Return a connection per contestant in which the eight tables have their names."""
    found: dict[str, object] = {OURS: ld.connect(str(folder / "lance"))}
    for peer in peers:
        found[peer] = connection = duckdb.connect()
        for name in TABLES:
            if peer == "pylance":
                connection.register(name, lance.dataset(str(folder / "lance" / f"{name}.lance")))
            else:
                kind = "VIEW" if peer == "parquet" else "TABLE"
                connection.execute(f"CREATE {kind} {name} AS FROM '{folder / 'parquet' / name}.parquet'")
    return found


def main() -> None:
    """Check that all give the same answers, then race."""
    parser = options(__doc__ or "", rows=0, rounds=5)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is 6 million lines")
    parser.add_argument("--peers", nargs="+", default=["parquet"], choices=["parquet", "pylance", "native"])
    arguments = parser.parse_args()
    contestants = connections(prepare(arguments.scale), arguments.peers)
    cases = []
    for name in chosen(sorted(path.stem for path in QUERIES.glob("*.sql")), arguments.only):
        query = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
        answers = [rounded(c.execute(query).fetchall()) for c in contestants.values()]  # type: ignore[attr-defined]
        assert all(answer == answers[0] for answer in answers), name
        runs = {who: lambda c=c, query=query: c.execute(query).fetchall() for who, c in contestants.items()}
        cases.append(race(name, runs, arguments.rounds))
    report(f"TPC-H at scale {arguments.scale:g} in DuckDB", cases, arguments.json)


def rounded(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return rows whose doubles are cut to nine digits, since sums in another order differ in the last."""
    return [tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows]


if __name__ == "__main__":
    main()
