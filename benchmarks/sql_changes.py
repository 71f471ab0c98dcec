"""How long do INSERT, DELETE, UPDATE and MERGE take?

The peers are our Python verbs, pylance's, and native tables of DuckDB. `--floor` adds one more: the Python verb after
DuckDB has parsed the statement and read its source.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report

VERB, PYLANCE, NATIVE = "Python verb", "pylance", "native table"
FLOOR = "verb after DuckDB's part"
STATEMENTS = {
    "INSERT of one row": "INSERT INTO t VALUES (-1, 1, 0.5, 'new')",
    "INSERT of 10 %": "INSERT INTO t SELECT * FROM more",
    "DELETE of 0.1 %": "DELETE FROM t WHERE id % 1000 = 7",
    "UPDATE of 1 %": "UPDATE t SET a = a + 1 WHERE b = 7",
    "MERGE of 1 %": (
        "MERGE INTO t USING changed USING (id) "
        "WHEN MATCHED THEN UPDATE SET a = changed.a, b = changed.b, s = changed.s WHEN NOT MATCHED THEN INSERT"
    ),
    "MERGE of 1 %, with expressions": (
        "MERGE INTO t USING changed USING (id) "
        "WHEN MATCHED THEN UPDATE SET a = changed.a + 0, b = changed.b, s = changed.s WHEN NOT MATCHED THEN INSERT"
    ),
}
SOURCES = {
    "INSERT of one row": None,
    "INSERT of 10 %": "FROM more",
    "MERGE of 1 %": "FROM changed",
    "MERGE of 1 %, with expressions": "SELECT *, changed.a + 0 FROM changed",
}
"""The query that DuckDB runs for a statement, if it runs one."""
NOTE = "Neither pylance nor the Python verbs parse SQL."


def rows(count: int, first: int = 0) -> pa.Table:
    """Return rows with ids from a number on."""
    rng = np.random.default_rng(first)
    ids = np.arange(first, first + count)
    return pa.table(
        {"id": ids, "a": rng.integers(0, 1 << 40, count), "b": (ids % 100) * 1.0, "s": [f"text {i % 997}" for i in ids]}
    )


def verbs(table: Any, more: pa.Table, some: pa.Table) -> dict[str, Callable[[], object]]:
    """Return each change as a call of the Python verb."""
    one = pa.table({"id": [-1], "a": [1], "b": [0.5], "s": ["new"]})
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return {
        "INSERT of one row": lambda: table.insert(one),
        "INSERT of 10 %": lambda: table.insert(more),
        "DELETE of 0.1 %": lambda: table.delete("id % 1000 = 7"),
        "UPDATE of 1 %": lambda: table.update({"a": "a + 1"}, where="b = 7"),
        "MERGE of 1 %": lambda: merge.execute(some),
        "MERGE of 1 %, with expressions": lambda: merge.execute(some),
    }


def asker(connection: Any, sql: str) -> Callable[[], object]:
    """Return a function that runs a statement and fetches its rows."""
    return lambda: connection.execute(sql).fetchall()


def after_duckdb(connection: Any, name: str, verb: Callable[[], object]) -> Callable[[], object]:
    """Return a function that lets DuckDB parse the statement and read its source, then calls the verb."""

    def run() -> None:
        connection.extract_statements(STATEMENTS[name])
        if SOURCES[name] is not None:
            connection.sql(SOURCES[name]).to_arrow_table()
        verb()

    return run


def main() -> None:
    """Race the statements."""
    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000)
    add_clock(parser)
    parser.add_argument("--floor", action="store_true", help="also race the verb after DuckDB's part of the statement")
    arguments = parser.parse_args()
    count = arguments.rows
    start, more, some = rows(count), rows(count // 10, count), rows(count // 100, count - count // 200)
    cases = []
    for name in chosen(STATEMENTS, arguments.only):
        with tempfile.TemporaryDirectory() as folder:
            for place in ("t", "verb", "pylance"):
                ld.write_dataset(start, Path(folder) / f"{place}.lance")
            table, peer = ld.dataset(Path(folder) / "verb.lance"), lance.dataset(Path(folder) / "pylance.lance")
            with ld.connect(folder) as sql, duckdb.connect() as native:
                native.execute("CREATE TABLE t AS FROM start")
                for connection in (sql, native):
                    connection.register("more", more)
                    connection.register("changed", some)
                text = STATEMENTS[name]
                contestants: dict[str, Callable[[], object]] = {
                    OURS: asker(sql, text),
                    VERB: verbs(table, more, some)[name],
                    PYLANCE: verbs(peer, more, some)[name],
                    NATIVE: asker(native, text),
                }
                if arguments.floor and name in SOURCES:
                    contestants[FLOOR] = after_duckdb(native, name, contestants[VERB])
                cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Change a table of {count:,} rows in SQL", cases, arguments, NOTE)


if __name__ == "__main__":
    main()
