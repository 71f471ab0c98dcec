"""Joins of tables without indexes give the same rows, whether keys restrict their scans or not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.run import key_scans, semi_join_pushdown
from lance_duck.duck.tables.table import Restriction
from lance_duck.scan.predicate.tree import Predicate

STATEMENTS = 2000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 60
COLUMNS = {
    "line": ("l", {"o": pa.int64(), "p": pa.int32(), "s": pa.int64(), "q": pa.int64(), "d": pa.float64()}),
    "orders": ("o", {"k": pa.int64(), "c": pa.uint64(), "q": pa.int64(), "d": pa.float64()}),
    "part": ("p", {"k": pa.int32(), "q": pa.int64(), "t": pa.string()}),
    "supplier": ("s", {"k": pa.int64(), "n": pa.int64(), "q": pa.int64()}),
    "nation": ("n", {"k": pa.int64(), "q": pa.int64(), "t": pa.string()}),
}
ROWS = {"line": 400, "orders": 120, "part": 60, "supplier": 30, "nation": 12}
EDGES = [
    ("line", "l_o", "orders", "o_k"),
    ("line", "l_p", "part", "p_k"),
    ("line", "l_s", "supplier", "s_k"),
    ("line", "l_q", "nation", "n_q"),
    ("supplier", "s_n", "nation", "n_k"),
    ("orders", "o_c", "nation", "n_k"),
    ("orders", "o_k", "part", "p_k"),
    ("orders", "o_d", "supplier", "s_q"),
    ("line", "l_d", "orders", "o_d"),
    ("part", "p_t", "nation", "n_t"),
]
VALUES: dict[Any, list[Any]] = {
    pa.int64(): [*range(40), -1, 2**53, 2**53 + 1, 2**63 - 1, None],
    pa.int32(): [*range(40), -1, None],
    pa.uint64(): [*range(40), 2**64 - 1, None],
    pa.float64(): [0.0, -0.0, 1.0, 2.5, float(2**53), float("nan"), None],
    pa.string(): ["", "a", "A", "ab", "b", None],
}


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Make keys restrict tables of any size, and record for each restricted scan whether its keys still held."""
    seen: list[bool] = []

    def noted(
        condition: Predicate, rows: int, origin: str, schema: pa.Schema, holds: Callable[[], bool]
    ) -> Restriction:
        def noted_holds() -> bool:
            seen.append(holds())
            return seen[-1]

        return Restriction(condition, rows, origin, schema, noted_holds)

    monkeypatch.setattr(semi_join_pushdown, "Restriction", noted)
    for name in ("SCANNED", "SMALLER_WHEN_SCANNED", "SELECTIVE_WHEN_SCANNED", "TINY", "KEY_QUERY_NS", "KEY_ROW_NS"):
        monkeypatch.setattr(key_scans, name, 0)
    for name in ("LARGE", "SELECTIVE_WHEN_SCANNED"):
        monkeypatch.setattr(semi_join_pushdown, name, 0)
    return seen


@pytest.fixture
def seed() -> int:
    """A fresh seed, which failures report."""
    return random.randrange(10**9)


@pytest.fixture
def both(tmp_path: Path, seed: int) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    rng = random.Random(seed)
    with duckdb.connect() as plain:
        for name, (letter, types) in COLUMNS.items():
            rows = {f"{letter}_{c}": [rng.choice(VALUES[t]) for _ in range(ROWS[name])] for c, t in types.items()}
            table = pa.table(rows, pa.schema([(f"{letter}_{c}", type_) for c, type_ in types.items()]))
            half = len(table) // 2
            ds = ld.write_dataset(table.slice(0, half), tmp_path / f"{name}.lance", max_rows_per_file=50)
            ds.insert(table.slice(half))
            ds.delete(f"{letter}_q = 7")
            plain.register("_table", table)
            plain.execute(f"CREATE TABLE {name} AS FROM _table WHERE {letter}_q IS DISTINCT FROM 7")
        with ld.connect(tmp_path) as ours:
            yield ours, plain


class _Statements:
    """Random statements with unqualified and qualified columns."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parameters: list[Any] = []
        self.qualified = rng.random() < 0.3

    def statement(self) -> str:
        makers = [
            self.commas,
            self.commas,
            self.joins,
            self.joins,
            self.joins,
            self.factored,
            self.exists,
            self.nested,
            self.correlated,
        ]
        return self.rng.choice(makers)()

    def column(self, name: str) -> str:
        owner = next(table for table, (letter, _) in COLUMNS.items() if letter == name[0])
        return f"{owner}.{name}" if self.qualified else name.upper() if self.rng.random() < 0.1 else name

    def test(self, table: str) -> str:
        letter, types = COLUMNS[table]
        whole = self.rng.choice([c for c, t in types.items() if pa.types.is_integer(t)])
        column = self.column(f"{letter}_{whole}")
        kinds = ["<", "=", "between", "is not null", *(["like", "in"] if "t" in types else [])]
        match self.rng.choice(kinds):
            case "between":
                return f"{column} BETWEEN 3 AND {self.number()}"
            case "is not null":
                return f"{column} IS NOT NULL"
            case "like":
                return f"{self.column(f'{letter}_t')} LIKE 'a%'"
            case "in":
                return f"{self.column(f'{letter}_t')} IN ('a', 'b')"
            case op:
                return f"{column} {op} {self.number()}"

    def number(self) -> str:
        value = self.rng.randrange(40)
        if self.rng.random() < 0.2:
            self.parameters.append(value)
            return "?"
        return str(value)

    def path(self) -> tuple[list[str], list[str]]:
        """Return joined tables, and the equalities between them."""
        tables, equal = ["line"], []
        for _ in range(self.rng.randint(1, 4)):
            left, a, right, b = self.rng.choice([edge for edge in EDGES if (edge[0] in tables) or edge[2] in tables])
            tables += [name for name in (left, right) if name not in tables]
            sides = [self.column(a), self.column(b)]
            self.rng.shuffle(sides)
            equal.append(" = ".join(sides))
        return tables, list(dict.fromkeys(equal))

    def shown(self, tables: list[str]) -> str:
        return ", ".join(self.column(f"{COLUMNS[table][0]}_q") for table in tables)

    def commas(self) -> str:
        tables, parts = self.path()
        parts += [self.test(table) for table in self.rng.choices(tables, k=self.rng.randint(1, 3))]
        shown, listed = self.shown(tables), list(tables)
        self.rng.shuffle(listed)
        return f"SELECT {shown} FROM {', '.join(listed)} WHERE {' AND '.join(parts)}"

    def joins(self) -> str:
        left, a, right, b = self.rng.choice(EDGES)
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
        sides = [left, right] if self.rng.random() < 0.7 else [right, left]
        seen = sides[:1] if kind in ("SEMI JOIN", "ANTI JOIN") else sides
        also = f" AND {self.test(self.rng.choice(sides))}" if self.rng.random() < 0.6 else ""
        on = f"{self.column(a)} = {self.column(b)}{also}"
        text = f"SELECT {self.shown(seen)} FROM {sides[0]} {kind} {sides[1]} ON {on}"
        further = [edge for edge in EDGES if edge[0] in seen and edge[2] not in sides]
        if further and self.rng.random() < 0.5:
            _, c, third, d = self.rng.choice(further)
            more = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
            text += f" {more} {third} ON {self.column(c)} = {self.column(d)}"
            seen = [*seen, third]
        return text + (f" WHERE {self.test(self.rng.choice(seen))}" if self.rng.random() < 0.7 else "")

    def factored(self) -> str:
        left, a, right, b = self.rng.choice(EDGES)
        same = f"{self.column(a)} = {self.column(b)}"
        branches = []
        for _ in range(self.rng.randint(2, 3)):
            parts = [same, self.test(right), *([self.test(left)] if self.rng.random() < 0.5 else [])]
            if self.rng.random() < 0.1:
                parts.remove(same)
            branches.append(f"({' AND '.join(parts)})")
        return f"SELECT {self.shown([left, right])} FROM {left}, {right} WHERE {' OR '.join(branches)}"

    def exists(self) -> str:
        left, a, right, b = self.rng.choice(EDGES)
        outer, inner = (left, right) if self.rng.random() < 0.5 else (right, left)
        not_ = self.rng.choice(["", "", "NOT "])
        also = "".join(f" AND {self.test(self.rng.choice([inner, outer]))}" for _ in range(self.rng.randint(0, 2)))
        within = f"SELECT * FROM {inner} WHERE {self.column(a)} = {self.column(b)}{also}"
        return f"SELECT {self.shown([outer])} FROM {outer} WHERE {self.test(outer)} AND {not_}EXISTS ({within})"

    def nested(self) -> str:
        _, a, middle, b = self.rng.choice([edge for edge in EDGES if edge[0] == "line"])
        deeper = [edge for edge in EDGES if edge[0] == middle]
        not_ = self.rng.choice(["", "", "", "NOT "])
        inner = self.test(middle)
        if deeper and self.rng.random() < 0.6:
            _, c, last, d = self.rng.choice(deeper)
            inner += f" AND {self.column(c)} IN (SELECT {self.column(d)} FROM {last} WHERE {self.test(last)})"
        query = f"SELECT {self.column(b)} FROM {middle} WHERE {inner}"
        return f"SELECT {self.shown(['line'])} FROM line WHERE {self.column(a)} {not_}IN ({query})"

    def correlated(self) -> str:
        _, a, other, b = self.rng.choice([edge for edge in EDGES if edge[0] == "line"])
        least = self.column(f"{COLUMNS[other][0]}_q")
        function = self.rng.choice(["max", "count", "min"])
        inner = f"SELECT {function}(l_q) FROM line WHERE {self.column(a)} = {self.column(b)}"
        return f"SELECT {self.shown([other])} FROM {other} WHERE {self.test(other)} AND {least} < ({inner})"


def test_joins_of_tables_without_indexes_equal_those_of_duckdb(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], scans: list[bool], seed: int
) -> None:
    ours, plain = both
    restricted = 0
    for number in range(STATEMENTS):
        made = _Statements(random.Random(seed * 1000 + number))
        sql = made.statement()
        expected = sorted(map(repr, plain.execute(sql, made.parameters or None).fetchall()))
        before = len(scans)
        found = ours.execute(sql, made.parameters or None).fetchall()
        restricted += len(scans) > before
        assert sorted(map(repr, found)) == expected, f"seed {seed}: {sql} {made.parameters}"
        if number % 7 == 0 and not made.parameters:
            assert sorted(map(repr, ours.sql(sql).fetchall())) == expected, f"seed {seed}: {sql}"
    print(f"{restricted} statements had restricted scans, {len(scans)} scans")
    assert all(scans)
    assert restricted > STATEMENTS / 4


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_only_rows_that_a_join_drops_are_skipped(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], scans: list[bool], kind: str
) -> None:
    ours, plain = both
    conditions = ["", "orders.o_q < 9", "line.l_q < 12", "orders.o_q IS NULL", "line.l_q IS NULL"]
    for tables in (["line", "orders"], ["orders", "line"]):
        seen = tables[: 1 if kind in ("SEMI JOIN", "ANTI JOIN") else 2]
        for on, where in product(conditions, conditions):
            sql = f"SELECT {', '.join(f'{name}.*' for name in seen)} FROM {tables[0]} {kind} {tables[1]}"
            sql += " ON line.l_o = orders.o_k" + (f" AND {on}" if on else "")
            further = ["", " LEFT JOIN nation ON nation.n_k = orders.o_q"] if "orders" in seen else [""]
            for more in further:
                text = sql + more + (f" WHERE {where}" if where.partition(".")[0] in seen else "")
                expected = sorted(map(repr, plain.execute(text).fetchall()))
                assert sorted(map(repr, ours.execute(text).fetchall())) == expected, text
    assert all(scans)
    assert bool(scans) is (kind != "FULL JOIN")


OF_OTHER_SCOPES = (
    # `s.s_k` and `o_k` belong to the enclosing statement, although a table beside the subquery has the same names.
    "SELECT s.s_k, (SELECT count(c.l_q) FROM (SELECT * FROM line WHERE line.l_s = s.s_k) c, supplier AS s "
    "WHERE s.s_q = 5) FROM supplier AS s WHERE s.s_q < 20",
    "SELECT s.s_k FROM supplier AS s WHERE s.s_q < 20 AND EXISTS (WITH c AS (SELECT * FROM line "
    "WHERE line.l_s = s.s_k) SELECT c.l_q FROM c, supplier AS s WHERE s.s_q = 5)",
    "SELECT o_k FROM orders WHERE o_q < 20 AND EXISTS (WITH c AS (SELECT * FROM line WHERE l_o = o_k) "
    "SELECT 1 FROM orders WHERE o_q = 5 AND o_q >= (SELECT min(c.l_q) FROM c))",
    "SELECT s_k FROM supplier WHERE s_q < 20 AND EXISTS (SELECT 1 FROM line WHERE l_s = s_k AND l_q < 30)",
)


@pytest.mark.parametrize("sql", OF_OTHER_SCOPES)
def test_subqueries_take_keys_from_the_statements_that_they_see(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], scans: list[bool], sql: str
) -> None:
    ours, plain = both
    assert sorted(map(repr, ours.execute(sql).fetchall())) == sorted(map(repr, plain.execute(sql).fetchall()))
    assert all(scans)


def test_a_relation_reads_the_newest_versions_of_all_its_tables(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], scans: list[bool]
) -> None:
    ours, _ = both
    sql = "SELECT count(*), sum(l_q) FROM line, orders WHERE l_o = o_k AND o_q < 30"
    relation = ours.sql(sql)
    for change in ("DELETE FROM line WHERE l_q < 9", "UPDATE orders SET o_q = 2 WHERE o_q > 30", "DELETE FROM orders"):
        before = relation.fetchall()
        assert before == ours.execute(sql).fetchall()
        ours.execute(change)
        assert relation.fetchall() == ours.execute(sql).fetchall() != before
    assert scans
