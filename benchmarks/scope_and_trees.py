"""How long does analysing a tokenized statement take: its tree, its scopes, its expressions?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import sqlglot
from sqlglot import exp

from lance_duck.duck.statement.scope import Scopes
from lance_duck.duck.statement.text import Statement

TPCH = sorted((Path(__file__).parents[1] / "tests" / "golden" / "tpch" / "queries").glob("*.sql"))
SIMPLE = [
    "SELECT g FROM t WHERE id = 7",
    "SELECT t.g FROM t JOIN u ON t.id = u.id WHERE u.x = 3",
    "SELECT g, sum(x) FROM t WHERE x > 2 GROUP BY g ORDER BY g LIMIT 5",
]
ROUNDS = 15


def main() -> None:
    """Print mean milliseconds per statement for each reader."""
    for name, texts in (("TPC-H", [file.read_text() for file in TPCH]), ("simple", SIMPLE)):
        expressions = [_expressions(text) for text in texts]
        tree = _milliseconds(lambda text: Statement(text).tree, texts)
        tokens = _milliseconds(lambda text: Statement(text).tokens, texts)
        scopes = _milliseconds(lambda text: Scopes(Statement.of(text).tokens), texts)
        alone = statistics.fmean(
            sum(_milliseconds(lambda text: sqlglot.parse_one(text, read="duckdb"), [part]) for part in parts)
            for parts in expressions
        )
        print(f"{name}: tree {tree - tokens:.2f} ms, scopes {scopes:.2f} ms, expressions alone {alone:.2f} ms")


def _expressions(text: str) -> list[str]:
    """Return the conditions and orders of a statement."""
    tree = sqlglot.parse_one(text, read="duckdb")
    return [node.this.sql("duckdb") for node in tree.find_all(exp.Where, exp.Ordered)]


def _milliseconds(read: Callable[[str], object], texts: list[str]) -> float:
    """Return the median time to read each of some texts, as their mean."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for text in texts:
            read(text)
        times.append((time.perf_counter() - start) / len(texts) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
