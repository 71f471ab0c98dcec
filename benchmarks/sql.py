"""How fast is SQL over a table in DuckDB, compared with pylance's dataset and Parquet in DuckDB?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_duck as ld
from benchmarks._harness import OURS, chosen, options, race, report
from benchmarks.columns import column
from benchmarks.tpch_data import money

QUERIES = {
    "count": "SELECT count(*) FROM t",
    "sum": "SELECT sum(a), avg(price) FROM t",
    "filter": "SELECT count(*), sum(a) FROM t WHERE b BETWEEN 100 AND 120",
    "filter on text": "SELECT count(*) FROM t WHERE word = 'ironic'",
    "like": "SELECT count(*) FROM t WHERE line LIKE 'furiously%'",
    "group by number": "SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b",
    "group by text": "SELECT word, count(*), sum(price) FROM t GROUP BY word ORDER BY word",
    "join": "SELECT name, count(*), sum(a) FROM t JOIN dim USING (b) WHERE kind = 3 GROUP BY name ORDER BY name",
    "limit": "SELECT * FROM t LIMIT 10",
    "top n": "SELECT id, price FROM t ORDER BY price DESC, id LIMIT 10",
    "point": "SELECT * FROM t WHERE id = 123_456",
    "in list": "SELECT * FROM t WHERE id IN (7, 70_000, 700_000, 123_456, 99)",
    "dates": "SELECT count(*), max(price) FROM t WHERE day >= DATE '1995-01-01' AND day < DATE '1995-02-01'",
    "wide": "SELECT count(id), count(a), count(price), count(day), count(word), count(line) FROM t",
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
            "word": column("string few", count, nulls=True),
            "line": column("string many", count, nulls=False),
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
    arguments = options(__doc__ or "", rows=2_000_000).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, parquet = str(Path(folder) / "t.lance"), Path(folder) / "t.parquet"
        data = rows(arguments.rows)
        lance.write_dataset(data, table, max_rows_per_file=500_000)
        pq.write_table(data, parquet)
        del data
        tables = {OURS: ld.dataset(table), "pylance": lance.dataset(table), "parquet": parquet}
        connections = {name: connect(found) for name, found in tables.items()}
        cases = []
        for name in chosen(QUERIES, arguments.only):
            answers = [sorted(map(str, c.execute(QUERIES[name]).fetchall())) for c in connections.values()]
            assert name == "limit" or answers[0] == answers[1] == answers[2], name
            runs = {who: lambda c=c, name=name: c.execute(QUERIES[name]).fetchall() for who, c in connections.items()}
            cases.append(race(name, runs, arguments.rounds))
    report(f"SQL over {arguments.rows:,} rows in DuckDB", cases, arguments.json)


if __name__ == "__main__":
    main()
