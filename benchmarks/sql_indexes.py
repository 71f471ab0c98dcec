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
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report
from benchmarks._indexed_tables import indexed_table
from benchmarks.indexes import LIBRARIES, table

Parameters = Callable[[np.random.Generator, int], list[Any]]

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
    """Return connections with the large tables `t` and `labelled`, and the table `wanted` of two keys.

    `t` is indexed by `id` and `name`, and `labelled` by the items of its list column `tags`.
    """
    theirs, native = duckdb.connect(), duckdb.connect()
    for name, path in (("t", table("pylance", rows)), ("labelled", labelled("pylance", rows))):
        found = lance.dataset(path)
        theirs.register(name, found)
        native.register("source", found)
        native.execute(f"CREATE TABLE {name} AS FROM source")
    native.execute("CREATE INDEX by_id ON t (id)")
    ours = ld.connect({"t": table(OURS, rows), "labelled": labelled(OURS, rows)})
    connections = {OURS: ours, "pylance": theirs, "native table": native}
    for connection in connections.values():
        connection.execute(f"CREATE TABLE wanted AS SELECT unnest([{rows // 7}, {rows // 3}])::BIGINT AS id")
    return connections


def labelled(who: str, rows: int) -> str:
    """Return the path of the table with lists. Write it and its index if they do not exist."""
    return indexed_table(f"labelled-{rows}-{who}", LIBRARIES[who], lists, rows, {"tags": "LABEL_LIST"})


def lists(start: int, count: int, _: int) -> pa.RecordBatch:
    """Return rows with three of 3,000 labels each."""
    items = np.random.default_rng(start).integers(0, 3000, 3 * count)
    tags = pa.ListArray.from_arrays(
        np.arange(0, 3 * count + 1, 3, np.int32), pa.array(items.tolist()).cast(pa.string())
    )
    return pa.record_batch({"id": np.arange(start, start + count), "tags": tags, "value": items[:count]})


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


def label(rng: np.random.Generator, _: int) -> list[str]:
    """Return a label."""
    return [str(rng.integers(0, 3000))]


def prefix(rng: np.random.Generator, rows: int) -> list[str]:
    """Return the first characters of ten names."""
    return [f"name {rng.integers(0, rows // 10):09d}"]


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
    "rows with a label": ("SELECT id, value FROM labelled WHERE list_contains(tags, ?)", label),
    "count of a label": ("SELECT count(*) FROM labelled WHERE ? IN tags", label),
    "prefix of a string": ("SELECT id, name, value FROM t WHERE starts_with(name, ?)", prefix),
    "EXISTS": ("SELECT t.value FROM t WHERE EXISTS (SELECT 1 FROM wanted w WHERE w.id = t.id)", none),
}


if __name__ == "__main__":
    main()
