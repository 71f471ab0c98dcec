"""Random conditions on list columns, in Lance tables with LABEL_LIST indexes and in native tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import lance
import pyarrow as pa

import lance_duck as ld
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

COUNT: Final = 240
_WORDS: Final = ["a", "b", "", "it's", "ü", "10", "%"]
_VALUES: Final[Mapping[str, list[str]]] = {
    "tags": ["'a'", "'b'", "''", "'it''s'", "'ü'", "'10'", "'%'", "'other'", "lower('A')", "NULL"],
    "numbers": ["0", "1", "-2", "3", "3.0", "1.5", "'1'", "CAST('1' AS INTEGER)", "99999999999", "NULL"],
    "days": ["DATE '2024-01-01'", "'2024-01-02'", "CAST('2024-01-03' AS DATE)", "DATE '1999-01-01'", "NULL"],
    "doubles": ["0.5", "-0.0", "0", "'nan'::DOUBLE", "CAST('inf' AS DOUBLE)", "0.1", "NULL"],
    "pairs": ["1", "2", "3", "NULL"],
    "nested.words": ["'a'", "'b'", "'other'", "NULL"],
}
_COLUMNS: Final = tuple(_VALUES)
_OTHERS: Final = ("id IS NOT DISTINCT FROM 20",) if SPEAKS_SOURCE else ()
"""DuckDB 1.5 cannot pass this comparison in an OR to any Arrow scan."""
_SHAPES: Final = (
    "SELECT id FROM t WHERE {}",
    "SELECT count(*) FROM t WHERE {}",
    "SELECT id, tags, numbers FROM t AS x WHERE {} ORDER BY id LIMIT 7",
    "SELECT k, count(*), max(id) FROM t WHERE {} GROUP BY k",
    "SELECT t.id, w FROM t JOIN u ON t.k = u.m WHERE {}",
    "SELECT w, id FROM u LEFT JOIN t ON t.k = u.m AND ({})",
    "SELECT id, w FROM t LEFT JOIN u ON t.id = u.m AND ({})",
    "SELECT id, k, w FROM t LEFT JOIN (SELECT m AS k, w FROM u) AS v USING (k) WHERE {}",
    "SELECT id, w FROM u RIGHT JOIN t ON t.k = u.m AND w = 2 WHERE {}",
    "SELECT id, w FROM t RIGHT JOIN u ON t.k = u.m AND ({})",
    "SELECT w FROM u SEMI JOIN t ON t.k = u.m AND ({})",
    "SELECT w FROM u ANTI JOIN t ON t.k = u.m AND ({})",
    "SELECT a.w, t.id FROM u AS a LEFT JOIN t ON a.m = t.k JOIN u AS b ON b.m = a.m AND ({})",
    "WITH c AS (SELECT * FROM t) SELECT id FROM c WHERE {}",
    "WITH c AS (SELECT * FROM t WHERE {}) SELECT a.id FROM c AS a JOIN c AS b ON a.id = b.k",
    "SELECT id FROM (SELECT * EXCLUDE (pairs) FROM t) AS q WHERE {}",
    "SELECT count(*) FROM (SELECT id, k, tags, numbers, days, doubles, pairs, nested FROM t WHERE k < 5) AS q WHERE {}",
    "SELECT count(*) FROM (SELECT t.*, w FROM t LEFT JOIN u ON t.k = u.m) AS q WHERE {}",
    "SELECT id FROM (SELECT id, k, numbers AS pairs, tags, numbers, days, doubles, nested FROM t) AS q WHERE {}",
    "SELECT id FROM (SELECT DISTINCT ON (k) * FROM t ORDER BY k, id) AS q WHERE {}",
    "SELECT id FROM (SELECT * FROM t ORDER BY id LIMIT 50) AS q WHERE {}",
    "SELECT id FROM t WHERE k = 2 UNION ALL SELECT id FROM t WHERE {}",
    "SELECT w FROM u WHERE EXISTS (FROM t WHERE t.k = u.m AND ({}))",
    "SELECT w FROM u WHERE m NOT IN (SELECT k FROM t WHERE {})",
    "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE {}",
    "SELECT id FROM whole WHERE {}",
    "SELECT id, k FROM few AS x WHERE {}",
    "SELECT w, id FROM u LEFT JOIN few ON few.k = u.m AND ({})",
    "SELECT id FROM first_rows WHERE {}",
    "CREATE OR REPLACE TEMP TABLE made AS SELECT id FROM t WHERE {}",
)
_VIEWS: Final = (
    "CREATE VIEW whole AS FROM t",
    "CREATE VIEW few AS SELECT * FROM whole WHERE k < 3 AND NOT list_contains(tags, 'b')",
    "CREATE VIEW first_rows AS SELECT * FROM t ORDER BY id LIMIT 40",
)
_CHANGES: Final = (
    "UPDATE t SET k = k + 10 WHERE {}",
    "UPDATE t SET k = m + 20 FROM (SELECT DISTINCT m FROM u) AS s WHERE t.k = s.m AND ({})",
    "DELETE FROM t WHERE ({}) AND id % 3 = 0",
    "DELETE FROM t USING u WHERE t.k = u.m AND w = 1 AND ({})",
    "MERGE INTO t USING (SELECT DISTINCT m FROM u) AS s ON t.id = s.m AND ({}) WHEN MATCHED THEN UPDATE SET k = 99",
    "INSERT INTO t SELECT id + 1000, * EXCLUDE (id) FROM t WHERE {}",
)


def rows(rng: Random) -> pa.Table:
    """Return rows with null lists, empty lists, null items, NaN and negative zeros."""

    def lists(values: list[Any], most: int = 3) -> list[Any]:
        return [None if rng.random() < 0.1 else rng.choices(values, k=rng.randrange(most + 1)) for _ in range(COUNT)]

    words = lists([*_WORDS[:3], None])
    pairs = [None if rng.random() < 0.1 else rng.choices([1, 2, None], k=2) for _ in range(COUNT)]
    day = pa.scalar("2024-01-01").cast(pa.date32()).value
    return pa.table(
        {
            "id": range(COUNT),
            "k": [rng.choice([0, 1, 2, 3, None]) for _ in range(COUNT)],
            "tags": pa.array(lists([*_WORDS, None]), pa.list_(pa.string())),
            "numbers": pa.array(lists([0, 1, -2, 3, None]), pa.list_(pa.int32())),
            "days": pa.array(lists([day, day + 1, day + 2, None]), pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
            "doubles": pa.array(lists([0.5, 0.0, -0.0, float("nan"), float("inf"), None]), pa.list_(pa.float64())),
            "pairs": pa.array(pairs, pa.list_(pa.int64(), 2)),
            "nested": pa.array([None if i % 11 == 0 else {"words": words[i]} for i in range(COUNT)]),
        }
    )


def make_tables(folder: Path, rng: Random, writer: str) -> tuple[ld.Connection, duckdb.DuckDBPyConnection]:
    """Write the same rows to a Lance table with indexes, deleted and unindexed rows, and to a native table.

    Args:
        folder: Folder of the Lance tables.
        rng: Source of the rows.
        writer: "lance_duck" or "pylance".
    """
    table, path = rows(rng), str(folder / "t.lance")
    indexed = [name for name in _COLUMNS if name != "pairs"]
    if writer == "pylance":
        theirs = lance.write_dataset(table.slice(0, 200), path, max_rows_per_file=80)
        for name in [name for name in indexed if "." not in name]:
            theirs.create_scalar_index(name, "LABEL_LIST")
        theirs.create_scalar_index("id", "BTREE")
        theirs.delete("id % 7 = 3")
        lance.write_dataset(table.slice(200), path, mode="append")
    else:
        ours = ld.write_dataset(table.slice(0, 200), path, max_rows_per_file=80)
        for name in indexed:
            ours.create_scalar_index(name, "LABEL_LIST")
        ours.create_scalar_index("id", "BTREE")
        ours.delete("id % 7 = 3")
        ours.insert(table.slice(200))
    ld.write_dataset(pa.table({"m": [1, 2, 30, None, 2], "w": [1, 2, None, 2, 5]}), folder / "u.lance")
    native = duckdb.connect()
    native.register("source", table)
    native.execute("CREATE TABLE t AS FROM source WHERE id >= 200 OR id % 7 <> 3")
    native.execute("CREATE TABLE u AS FROM (VALUES (1, 1), (2, 2), (30, NULL), (NULL, 2), (2, 5)) AS v(m, w)")
    ours_connection = ld.connect(folder)
    for view in _VIEWS:
        ours_connection.execute(view)
        native.execute(view)
    return ours_connection, native


def condition(rng: Random, depth: int = 2) -> str:
    """Return a random condition on list columns, and some on other columns."""
    kind = rng.randrange(10)
    if depth and kind < 3:
        return f"({condition(rng, depth - 1)} {rng.choice(['AND', 'OR'])} {condition(rng, depth - 1)})"
    if depth and kind == 3:
        return f"NOT ({condition(rng, depth - 1)})"
    if kind == 4:
        return rng.choice([*_OTHERS, "id = CAST('7' AS INTEGER)", "id < 90", "k IS NULL", "k = 2"])
    column = rng.choice(_COLUMNS)
    values = _VALUES[column]
    one, some = rng.choice(values), ", ".join(rng.choices(values, k=rng.randrange(4)))
    forms = [
        f"{rng.choice(['list_contains', 'array_contains', 'list_has', 'array_has'])}({column}, {one})",
        f"{rng.choice(['list_has_any', 'array_has_any', 'list_has_all', 'array_has_all'])}({column}, [{some}])",
        f"{one} IN {column}",
        f"{one} NOT IN {column}",
        f"{column} @> [{some}]",
        f"[{some}] <@ {column}",
        f"{column} <@ [{some}]",
        f"{column} && [{some}]",
        f"contains({column}, {one})",
        f"len({column}) = 2",
        f"list_contains({column}, {one}) IS NOT TRUE",
        f"{column} IS NULL",
    ]
    return rng.choice(forms)


def query(rng: Random) -> str:
    """Return a random query."""
    return rng.choice(_SHAPES).format(condition(rng))


def change(rng: Random) -> str:
    """Return a random change of rows."""
    return rng.choice(_CHANGES).format(condition(rng))


def answer(connection: Any, sql: str) -> Any:
    """Return the sorted rows of a statement, or the kind of its error."""
    try:
        found = connection.execute(sql).fetchall()
    except (duckdb.Error, ld.LanceDuckError):
        return "error"
    return sorted(map(repr, found))
