"""Statements read large tables through their indexes, and give what plain DuckDB gives."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck import narrowing
from lance_duck.duck.key_joins import key_joins

STATEMENTS = 2000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 150
NAN = float("nan")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size are worth it."""
    for name in ("LARGE", "PER_KEY", "SMALLER", "SELECTIVE"):
        monkeypatch.setattr(narrowing, name, 0)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each scan of a narrowed table, whether its keys still held."""
    seen: list[bool] = []
    implied = narrowing.NarrowedTable.implied

    def noted(table: narrowing.NarrowedTable) -> Any:
        found = implied(table)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(narrowing.NarrowedTable, "implied", noted)
    return seen


def _rows(rng: random.Random, rows: int) -> pa.Table:
    def column(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([rng.choice([*values, None]) for _ in range(rows)], type_)

    return pa.table(
        {
            "k": column(list(range(-3, 12)), pa.int64()),
            "i": column([*range(6), 2**31 - 1], pa.int32()),
            "s": column(["", "a", "A", "b", "bb", "ß", "é"], pa.string()),
            "d": column([0.0, -0.0, 1.5, NAN, math.inf, -math.inf], pa.float64()),
            "v": column(list(range(4)), pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, pa.Table]]]:
    rng = random.Random(7)
    folder = tmp_path_factory.mktemp("joins")
    tables = {"big": _rows(rng, 60), "other": _rows(rng, 40), "small": _rows(rng, 5), "tiny": _rows(rng, 3)}
    for name in ("big", "other", "small"):
        table = lance.write_dataset(tables[name].slice(0, 30), folder / f"{name}.lance", max_rows_per_file=15)
        for column in ("k", "i", "s", "d"):
            table.create_scalar_index(column, "BTREE" if column != "i" else "BITMAP")
        table.insert(tables[name].slice(30))
    yield folder, tables


@pytest.fixture
def both(places: tuple[Path, dict[str, pa.Table]]) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    folder, tables = places
    with ld.connect(folder) as ours, duckdb.connect() as plain:
        for name, table in tables.items():
            plain.register(f"_{name}", table)
            plain.execute(f"CREATE TABLE {name} AS FROM _{name}")
        ours.native.register("_tiny", tables["tiny"])
        ours.execute("CREATE TABLE tiny AS FROM _tiny")
        yield ours, plain


def _sorted(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


class _Grammar:
    """Random statements over big, other, small (Lance), tiny (DuckDB's), lists of values and named queries."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parameters: list[Any] = []

    def statement(self) -> str:
        a, b, c = ("x", "y", "z")
        pick = self.rng.choice
        shape = pick(["join", "join", "join", "three", "comma", "in", "in", "scalar", "exists", "using", "with", "union"])
        if shape == "join":
            kind = pick(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
            left = f"{self.table()} {a}"
            seen = [a] if kind in ("SEMI JOIN", "ANTI JOIN") else [a, b]
            shown = ", ".join(f"{t}.k, {t}.s, {t}.v" for t in seen)
            on = f"{self.equal(a, b)}{self.also([a, b])}"
            return f"SELECT {shown} FROM {left} {kind} {self.side(b)} ON {on}{self.where(seen)}"
        if shape == "three":
            kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN"]
            return (
                f"SELECT {a}.k, {b}.i, {c}.s FROM {self.side(a)} {pick(kinds)} {self.table()} {b} ON {self.equal(a, b)} "
                f"{pick(kinds)} {self.side(c)} ON {self.equal(pick([a, b]), c)}{self.also([b, c])}{self.where([a, b, c])}"
            )
        if shape == "comma":
            return f"SELECT {a}.*, {b}.v FROM {self.table()} {a}, {self.side(b)}{self.where([a, b], self.equal(a, b))}"
        if shape == "using":
            kind = pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN", "FULL JOIN"])
            return f"SELECT {a}.s, {a}.v FROM {self.table()} {a} {kind} {self.side(b)} USING ({pick('kisd')})"
        if shape == "in":
            not_ = pick(["", "", "", "NOT "])
            column = pick("kisd")
            return f"SELECT k, s FROM {self.table()} t WHERE {column} {not_}IN ({self.query(column)}){self.maybe_or('t')}"
        if shape == "scalar":
            column = pick("ki")
            function = pick(["max", "min"])
            return f"SELECT k, i FROM {self.table()} t WHERE t.{column} = (SELECT {function}({column}) FROM {self.small()})"
        if shape == "exists":
            inner = f"SELECT 1 FROM {self.small()} {b} WHERE {self.equal(a, b)}{self.also([b])}"
            return f"SELECT {a}.k, {a}.s FROM {self.table()} {a} WHERE {pick(['', 'NOT '])}EXISTS ({inner})"
        if shape == "with":
            column = pick("kis")
            return (
                f"WITH keys AS ({self.query(column)}) SELECT {a}.k, {a}.v, keys.{column} FROM {self.table()} {a} "
                f"{pick(['JOIN', 'LEFT JOIN', 'RIGHT JOIN'])} keys ON {a}.{column} = keys.{column}"
            )
        inner = f"SELECT count(*) FROM {self.table()} {b} WHERE {self.equal(a, b)}"
        union = f"SELECT {a}.k, ({inner}) FROM {self.small()} {a}{self.where([a])}"
        return f"{union} UNION ALL SELECT k, 1 FROM {self.table()} WHERE i IN ({self.query('i')})"

    def table(self) -> str:
        return self.rng.choice(["big", "big", "other", "BIG", '"other"', "small"])

    def small(self) -> str:
        return self.rng.choice(["small", "tiny", "tiny", "big"])

    def side(self, alias: str) -> str:
        if self.rng.random() < 0.15:
            return f"(VALUES (3::BIGINT, 1, 'a', 1.5::DOUBLE, 2), (NULL, 2, 'A', 0, 1)) {alias}(k, i, s, d, v)"
        if self.rng.random() < 0.2:
            return f"(SELECT * FROM {self.small()} WHERE v <> {self.number()}) {alias}"
        return f"{self.small()} {alias}"

    def equal(self, a: str, b: str) -> str:
        column = self.rng.choice(["k", "k", "i", "s", "d"])
        other = {"k": "ki", "i": "ik", "s": "s", "d": "d"}[column]
        sides = [f"{a}.{column}", f"{b}.{self.rng.choice(other)}"]
        self.rng.shuffle(sides)
        return " = ".join(sides)

    def query(self, column: str) -> str:
        distinct = self.rng.choice(["", "DISTINCT "])
        return f"SELECT {distinct}{column} FROM {self.small()} WHERE v {self.rng.choice(['<', '=', '>='])} {self.number()}"

    def number(self) -> str:
        value = self.rng.randrange(4)
        if self.rng.random() < 0.4:
            self.parameters.append(value)
            return "?"
        return str(value)

    def also(self, aliases: list[str]) -> str:
        if self.rng.random() < 0.5:
            return ""
        return f" AND {self.rng.choice(aliases)}.v {self.rng.choice(['=', '<>', '<'])} {self.number()}"

    def maybe_or(self, alias: str) -> str:
        return self.rng.choice(["", "", f" OR {alias}.v = 1", f" AND {alias}.v IS NOT NULL"])

    def where(self, aliases: list[str], first: str = "") -> str:
        parts = [first] if first else []
        if self.rng.random() < 0.5:
            alias = self.rng.choice(aliases)
            test = self.rng.choice(["v = 1", "v IS NULL", "i > 1", "s <> 'a'", "k IS NOT NULL"]).split(" ", 1)
            parts.append(f"{alias}.{test[0]} {test[1]}")
        if self.rng.random() < 0.2:
            parts.append(f"{self.rng.choice(aliases)}.k IN ({self.query('k')})")
        return " WHERE " + " AND ".join(parts) if parts else ""


@pytest.mark.usefixtures("eager")
def test_random_statements_give_what_plain_duckdb_gives(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], held: list[bool]
) -> None:
    ours, plain = both
    seed = random.randrange(10**9)
    print(f"seed {seed}, {STATEMENTS} statements")
    narrowed = 0
    for number in range(STATEMENTS):
        grammar = _Grammar(random.Random(seed * 1000 + number))
        sql = grammar.statement()
        expected = plain.execute(sql, grammar.parameters or None).fetchall()
        before = len(held)
        found = ours.execute(sql, grammar.parameters or None).fetchall()
        narrowed += len(held) > before
        assert _sorted(found) == _sorted(expected), f"seed {seed}: {sql} {grammar.parameters}"
        if number % 5 == 0 and not grammar.parameters:
            assert _sorted(ours.sql(sql).fetchall()) == _sorted(expected), f"seed {seed}: {sql}"
    print(f"{narrowed} statements were narrowed, {sum(held)} scans of {len(held)}")
    assert narrowed > STATEMENTS / 4
    assert sum(held) > len(held) / 2
