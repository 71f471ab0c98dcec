"""How fast are queries in DuckDB, compared with pylance's dataset and with Parquet?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks.columns import column
from benchmarks.tpch_data import money

QUERIES = {
    "count(*)": "SELECT count(*) FROM t",
    "sum and average": "SELECT sum(a), avg(price) FROM t",
    "filter by a range": "SELECT count(*), sum(a) FROM t WHERE b BETWEEN 100 AND 120",
    "filter by a string": "SELECT count(*) FROM t WHERE word = 'ironic'",
    "filter by LIKE": "SELECT count(*) FROM t WHERE line LIKE 'furiously%'",
    "GROUP BY an integer": "SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b",
    "GROUP BY a string": "SELECT word, count(*), sum(price) FROM t GROUP BY word ORDER BY word",
    "join with a native table": (
        "SELECT name, count(*), sum(a) FROM t JOIN dim USING (b) WHERE kind = 3 GROUP BY name ORDER BY name"
    ),
    "LIMIT 10": "SELECT * FROM t LIMIT 10",
    "ten greatest": "SELECT id, price FROM t ORDER BY price DESC, id LIMIT 10",
    "one row by key, without an index": "SELECT * FROM t WHERE id = 123_456",
    "IN of five keys, without an index": "SELECT * FROM t WHERE id IN (7, 70_000, 700_000, 123_456, 99)",
    "filter by a month": (
        "SELECT count(*), max(price) FROM t WHERE day >= DATE '1995-01-01' AND day < DATE '1995-02-01'"
    ),
    "count of six columns": "SELECT count(id), count(a), count(price), count(day), count(word), count(line) FROM t",
}

NOTES = {
    "count of six columns": "Parquet stores these counts in its footer.",
    "count(*)": "DuckDB requests a column of a registered dataset. A connection of lance-duck reads only metadata.",
}


def rows(count: int) -> pa.Table:
    """Return the fact table."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(count),
            "a": rng.integers(0, 1 << 40, count),
            "b": rng.integers(0, 1000, count).astype(np.int32),
            "price": money(rng.integers(100, 10_000_000, count)),
            "day": column("date32", count, nulls=False),
            "word": column("string, 25 values", count, nulls=True),
            "line": column("string, three words", count, nulls=False),
        }
    )


def connect(table: object) -> duckdb.DuckDBPyConnection:
    """Return a connection where `t` is the given dataset or Parquet file, and `dim` a small table."""
    connection = duckdb.connect()
    if isinstance(table, Path):
        connection.execute(f"CREATE VIEW t AS FROM '{table}'")
    else:
        connection.register("t", table)
    connection.execute(
        "CREATE TABLE dim AS SELECT i::INT AS b, i % 10 AS kind, 'name ' || (i % 20) AS name FROM range(1000) r(i)"
    )
    return connection


def main() -> None:
    """Run each query on the three tables."""
    parser = options(__doc__ or "", rows=2_000_000)
    add_clock(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, parquet = str(Path(folder) / "t.lance"), Path(folder) / "t.parquet"
        data = rows(arguments.rows)
        lance.write_dataset(data, table, max_rows_per_file=500_000)
        pq.write_table(data, parquet)
        del data
        tables = {OURS: ld.dataset(table), "pylance": lance.dataset(table), "Parquet": parquet}
        connections = {name: connect(found) for name, found in tables.items()}
        cases = []
        for name in chosen(QUERIES, arguments.only):
            answers = [sorted(map(str, c.execute(QUERIES[name]).fetchall())) for c in connections.values()]
            assert name == "LIMIT 10" or answers[0] == answers[1] == answers[2], name
            runs = {who: lambda c=c, name=name: c.execute(QUERIES[name]).fetchall() for who, c in connections.items()}
            cases.append(race(name, runs, arguments.rounds, clock_of(arguments), NOTES.get(name, "")))
    report(f"Query {arguments.rows:,} rows in DuckDB", cases, arguments)


if __name__ == "__main__":
    main()
