"""How fast are SQL queries through an index, compared with pylance's dataset and with an indexed native table?

The values change from round to round, and all contestants get the same ones. The first run of a statement is not
timed, because it plans more than later ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import duckdb
import lance
import numpy as np

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report
from benchmarks.indexes import table

Parameters = Callable[[np.random.Generator, int], list[int]]

WANTED = "SELECT t.id, t.name, t.value FROM t JOIN wanted w ON t.id = w.id"
AMONG = ", ".join("?" * 100)


def main() -> None:
    """Race through the questions."""
    parser = options((__doc__ or "").split("\n")[0], rows=10_000_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    connections = connect(arguments.rows)
    cases = []
    for name, (sql, parameters) in QUESTIONS.items():
        if arguments.only in name:
            contestants = {who: asker(c, sql, parameters, arguments.rows) for who, c in connections.items()}
            first = {str(sorted(map(str, ask()))) for ask in contestants.values()}
            assert len(first) == 1, name
            cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Query {arguments.rows:,} rows in SQL through an index", cases, arguments)


def connect(rows: int) -> dict[str, Any]:
    """Return connections with the large table `t`, indexed by `id`, and the table `wanted` of two keys."""
    theirs, native = duckdb.connect(), duckdb.connect()
    found = lance.dataset(table("pylance", rows))
    theirs.register("t", found)
    native.register("source", found)
    native.execute("CREATE TABLE t AS FROM source")
    native.execute("CREATE INDEX by_id ON t (id)")
    connections = {OURS: ld.connect({"t": table(OURS, rows)}), "pylance": theirs, "native table": native}
    for connection in connections.values():
        connection.execute(f"CREATE TABLE wanted AS SELECT unnest([{rows // 7}, {rows // 3}])::BIGINT AS id")
    return connections


def asker(connection: Any, sql: str, parameters: Parameters, rows: int) -> Callable[[], list[Any]]:
    """Return a function that uses new values in each call. All contestants draw the same ones."""
    seeds = itertools.count()

    def ask() -> list[Any]:
        given = parameters(np.random.default_rng(next(seeds)), rows)
        return list(connection.execute(sql, given or None).fetchall())

    return ask


def one(rng: np.random.Generator, rows: int) -> list[int]:
    """Return a key."""
    return [int(rng.integers(0, rows))]


def two(rng: np.random.Generator, rows: int) -> list[int]:
    """Return two keys."""
    return rng.integers(0, rows, 2).tolist()


def span(rng: np.random.Generator, rows: int) -> list[int]:
    """Return the ends of a range of 1,000 keys."""
    first = int(rng.integers(0, rows - 1000))
    return [first, first + 999]


def hundred(rng: np.random.Generator, rows: int) -> list[int]:
    """Return a hundred keys."""
    return rng.integers(0, rows, 100).tolist()


def none(_: np.random.Generator, __: int) -> list[int]:
    """Return an empty list."""
    return []


QUESTIONS: dict[str, tuple[str, Parameters]] = {
    "one row by key": ("SELECT id, name, value FROM t WHERE id = ?", one),
    "one row by key, all columns": ("SELECT * FROM t WHERE id = ?", one),
    "range of 1,000 keys": ("SELECT id, name, value FROM t WHERE id BETWEEN ? AND ?", span),
    "IN of 100 keys": (f"SELECT id, name, value FROM t WHERE id IN ({AMONG})", hundred),
    "count of a range": ("SELECT count(*) FROM t WHERE id BETWEEN ? AND ?", span),
    "count of a key": ("SELECT count(*) FROM t WHERE id = ?", one),
    "join with a table of two keys": (WANTED, none),
    "join with VALUES of two keys": ("SELECT t.id, t.value FROM t JOIN (VALUES (?), (?)) w(id) ON t.id = w.id", two),
    "IN (SELECT …)": ("SELECT id, value FROM t WHERE id IN (SELECT id FROM wanted)", none),
    "min and max of the key": ("SELECT min(id), max(id) FROM t", none),
    "EXISTS": ("SELECT t.value FROM t WHERE EXISTS (SELECT 1 FROM wanted w WHERE w.id = t.id)", none),
}


if __name__ == "__main__":
    main()
