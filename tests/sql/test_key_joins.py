"""Statements read large tables through their indexes, and give what plain DuckDB gives."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck import planner
from lance_duck.duck.rules import join_keys
from lance_duck.duck.run import key_scans, named_tables, semi_join_pushdown
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.table import Restriction
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.scan.read.fragment_reader import FragmentReader

STATEMENTS = 2000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 100
NAN = float("nan")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size are worth it."""
    for name in ("LARGE", "PER_KEY", "SMALLER", "SELECTIVE"):
        monkeypatch.setattr(semi_join_pushdown, name, 0)
    for name in ("SCANNED", "SMALLER_WHEN_SCANNED", "SELECTIVE_WHEN_SCANNED", "TINY", "KEY_QUERY_NS", "KEY_ROW_NS"):
        monkeypatch.setattr(key_scans, name, 0)
    monkeypatch.setattr(semi_join_pushdown, "SELECTIVE_WHEN_SCANNED", 0)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each scan of a narrowed table, whether its keys still held."""
    seen: list[bool] = []

    def noted(
        condition: Predicate, rows: int, origin: str, schema: pa.Schema, holds: Callable[[], bool]
    ) -> Restriction:
        def noted_holds() -> bool:
            seen.append(holds())
            return seen[-1]

        return Restriction(condition, rows, origin, schema, noted_holds)

    monkeypatch.setattr(semi_join_pushdown, "Restriction", noted)
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
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pa.Table]]:
    rng = random.Random(7)
    folder = tmp_path_factory.mktemp("joins")
    tables = {"big": _rows(rng, 60), "other": _rows(rng, 40), "small": _rows(rng, 5), "tiny": _rows(rng, 3)}
    for name in ("big", "other", "small"):
        table = lance.write_dataset(tables[name].slice(0, 30), folder / f"{name}.lance", max_rows_per_file=15)
        for column in ("k", "i", "s", "d"):
            table.create_scalar_index(column, "BTREE" if column != "i" else "BITMAP")
        table.insert(tables[name].slice(30))
    ids = lance.write_dataset(pa.table({"id": range(2000), "v": range(2000)}), folder / "ids.lance")
    ids.create_scalar_index("id", "BTREE")
    return folder, tables


@pytest.fixture
def both(places: tuple[Path, dict[str, pa.Table]]) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    folder, tables = places
    with ld.connect(folder) as ours, duckdb.connect() as plain:
        for name, table in tables.items():
            plain.register(f"_{name}", table)
            plain.execute(f"CREATE TABLE memory.{name} AS FROM _{name}")
        ours.register("_tiny", tables["tiny"])
        ours.execute("CREATE TABLE memory.tiny AS FROM _tiny")
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
        shape = pick(
            ["join", "join", "join", "three", "comma", "in", "in", "scalar", "exists", "using", "bare", "with", "union"]
        )
        if shape == "join":
            kind = pick(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
            left = f"{self.table()} {a}"
            seen = [a] if kind in ("SEMI JOIN", "ANTI JOIN") else [a, b]
            shown = ", ".join(f"{t}.k, {t}.s, {t}.v" for t in seen)
            on = f"{self.equal(a, b)}{self.also([a, b])}"
            return f"SELECT {shown} FROM {left} {kind} {self.side(b)} ON {on}{self.where(seen)}"
        if shape == "three":
            kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN"]
            first = f"{self.side(a)} {pick(kinds)} {self.table()} {b} ON {self.equal(a, b)}"
            then = f"{pick(kinds)} {self.side(c)} ON {self.equal(pick([a, b]), c)}{self.also([b, c])}"
            return f"SELECT {a}.k, {b}.i, {c}.s FROM {first} {then}{self.where([a, b, c])}"
        if shape == "comma":
            return f"SELECT {a}.*, {b}.v FROM {self.table()} {a}, {self.side(b)}{self.where([a, b], self.equal(a, b))}"
        if shape == "bare":
            kind = pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"])
            sub = f"(SELECT k AS x, s AS y, v AS w FROM {self.small()}) {b}"
            on = pick(["k = x", "x = k", "s = y", "y = s AND w = 1"])
            return f"SELECT k, s, v FROM {self.table()} {a} {kind} {sub} ON {on}"
        if shape == "using":
            kind = pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN", "FULL JOIN"])
            column = pick("kisd")
            where = pick(["", "", f" WHERE {column} IN (SELECT {column} FROM tiny)"])
            return f"SELECT {a}.s, {a}.v FROM {self.table()} {a} {kind} {self.side(b)} USING ({column}){where}"
        if shape == "in":
            not_ = pick(["", "", "", "NOT "])
            column = pick("kisd")
            return (
                f"SELECT k, s FROM {self.table()} t WHERE {column} {not_}IN ({self.query(column)}){self.maybe_or('t')}"
            )
        if shape == "scalar":
            column = pick("ki")
            function = pick(["max", "min"])
            query = f"SELECT {function}({column}) FROM {self.small()}"
            return f"SELECT k, i FROM {self.table()} t WHERE t.{column} = ({query})"
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
        return (
            f"SELECT {distinct}{column} FROM {self.small()} WHERE v {self.rng.choice(['<', '=', '>='])} {self.number()}"
        )

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
@pytest.mark.parametrize("first", range(4))
def test_narrowed_tables_do_not_replace_other_reads_of_the_same_table(
    first: int, both: tuple[ld.Connection, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, plain = both
    sql = "SELECT x.k, x.s, x.v FROM BIG x ANTI JOIN small y ON x.s = y.s"
    monkeypatch.setattr(named_tables, "_NUMBERS", itertools.count(first))
    monkeypatch.setattr(ours._catalog.binder, "_numbers", itertools.count())
    assert _sorted(ours.execute(sql).fetchall()) == _sorted(plain.execute(sql).fetchall())


@pytest.mark.usefixtures("eager")
def test_random_joins_equal_those_of_duckdb(
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


LEFT_ALONE = [
    "SELECT * FROM big b LEFT JOIN tiny s ON b.k = s.k",
    "SELECT * FROM big b FULL JOIN tiny s ON b.k = s.k",
    "SELECT * FROM big b ANTI JOIN tiny s ON b.k = s.k",
    "SELECT * FROM big b ASOF JOIN tiny s ON b.i = s.i AND b.k >= s.k",
    "SELECT * FROM big b POSITIONAL JOIN tiny s WHERE b.k = s.k",
    "SELECT b.k FROM big b NATURAL JOIN tiny s",
    "SELECT * FROM big WHERE k NOT IN (SELECT k FROM tiny WHERE k IS NOT NULL)",
    "SELECT * FROM big WHERE k IN (SELECT k FROM tiny) OR v = 1",
    "SELECT * FROM big WHERE (k IN (SELECT k FROM tiny)) IS NULL",
    "SELECT k IN (SELECT k FROM tiny) FROM big",
    "SELECT * FROM big WHERE k IN (SELECT k FROM tiny ORDER BY v, k, i, s, d LIMIT 2)",
    "SELECT * FROM big WHERE k IN (SELECT (random() * 0)::BIGINT FROM tiny)",
    "SELECT * FROM big WHERE k IN (SELECT k + v FROM tiny t WHERE t.v = big.v)",
    "SELECT * FROM big b JOIN tiny s ON b.k = s.k + 0",
    "SELECT * FROM big b JOIN tiny s ON b.k <= s.k",
    "SELECT * FROM big b JOIN tiny s ON b.d = s.k",
    "SELECT * FROM big b JOIN tiny s ON b.s = s.k::VARCHAR",
    "SELECT * FROM big b JOIN tiny s ON b.k = s.k OR b.i = s.i",
    "WITH big AS (SELECT 1 AS k, 2 AS v) SELECT * FROM big JOIN tiny USING (k)",
    "WITH RECURSIVE r(k) AS (SELECT 1::BIGINT UNION ALL SELECT k + 1 FROM r WHERE k < 4) "
    "SELECT big.k FROM big JOIN r ON big.k = r.k",
    "SELECT count(*) FROM (SELECT * FROM big LIMIT 7) b JOIN tiny s ON b.k = s.k AND false",
    "SELECT * FROM big b JOIN tiny s ON b.s = s.s COLLATE NOCASE",
    "SELECT (SELECT max(b.v) FROM big b WHERE b.k = s.k + 1) FROM tiny s",
    "SELECT * FROM big WHERE k = 3",
    "SELECT * FROM big WHERE k = ANY([1, 2])",
]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("sql", LEFT_ALONE)
def test_joins_that_need_rows_without_a_matching_key_are_not_narrowed(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], held: list[bool], sql: str
) -> None:
    ours, plain = both
    assert _sorted(ours.execute(sql).fetchall()) == _sorted(plain.execute(sql).fetchall())
    assert not held


@pytest.mark.usefixtures("eager")
def test_joins_with_collations_are_not_narrowed(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    ours.execute("CREATE TABLE memory.loose (s VARCHAR COLLATE NOCASE)")
    ours.execute("INSERT INTO loose VALUES ('A')")
    texts = ours.execute("SELECT DISTINCT b.s FROM big b JOIN loose l ON b.s = l.s ORDER BY ALL").fetchall()
    assert texts == [("A",), ("a",)]
    ours.execute("DROP TABLE loose")
    ours.execute("SET default_collation = 'nocase'")
    assert ours.execute("SELECT DISTINCT b.s FROM big b JOIN (VALUES ('A')) l(s) ON b.s = l.s").fetchall()
    assert not held


@pytest.mark.usefixtures("eager")
def test_temporary_tables_take_precedence_over_lance_tables(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    ours.execute("CREATE TEMP TABLE big AS SELECT 3::BIGINT AS k, 'mine' AS s")
    assert ours.execute("SELECT big.s FROM big JOIN (VALUES (3)) v(k) ON big.k = v.k").fetchall() == [("mine",)]
    assert not held


@pytest.mark.usefixtures("eager")
def test_streams_are_read_once(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    once = pa.table({"k": [3, 4]}).to_reader()
    found = ours.execute("SELECT DISTINCT b.k FROM big b JOIN once o ON b.k = o.k ORDER BY ALL").fetchall()
    assert found == [(3,), (4,)]
    assert once is not None
    assert not held


@pytest.mark.usefixtures("eager")
def test_caller_variables_supply_keys(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    wanted = pa.table({"k": [3, 4]})
    sql = "SELECT DISTINCT b.k FROM big b JOIN wanted w ON b.k = w.k ORDER BY ALL"
    assert ours.execute(sql).fetchall() == ours.sql(sql).fetchall() == [(3,), (4,)]
    assert wanted.num_rows == 2
    assert held == ([True, True] if SPEAKS_SOURCE else [True])  # keys do not restrict relations of DuckDB 1.x


@pytest.mark.usefixtures("eager")
def test_relations_see_later_changes_of_their_tables(both: tuple[ld.Connection, Any]) -> None:
    ours, _ = both
    ours.execute("CREATE TABLE memory.mine AS SELECT 3::BIGINT AS k")
    relation = ours.sql("SELECT DISTINCT b.k FROM big b JOIN mine m ON b.k = m.k ORDER BY ALL")
    ours.execute("UPDATE mine SET k = 4")
    assert relation.fetchall() == [(4,)]


@pytest.mark.usefixtures("eager")
def test_keys_that_change_before_the_scan_are_not_used(
    both: tuple[ld.Connection, Any], held: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = both
    ours.execute("CREATE TABLE memory.mine AS SELECT 3::BIGINT AS k")
    writer = ours.cursor()
    (narrow,) = (rule for rule in planner.RULES if rule.run is semi_join_pushdown.run)

    def raced(*arguments: Any) -> Any:
        rewriting = semi_join_pushdown.run(*arguments)
        writer.execute("UPDATE mine SET k = 4")
        return rewriting

    rules = tuple(replace(rule, run=raced) if rule is narrow else rule for rule in planner.RULES)
    monkeypatch.setattr(planner, "RULES", rules)
    found = ours.execute("SELECT DISTINCT b.k FROM big b JOIN mine m ON b.k = m.k").fetchall()
    assert found == [(4,)]
    assert held == ([False] if SPEAKS_SOURCE else [])


@pytest.mark.usefixtures("eager")
def test_joins_within_transactions_are_not_narrowed(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    ours.begin()
    ours.execute("CREATE TABLE memory.mine AS SELECT 3::BIGINT AS k")
    assert ours.execute("SELECT DISTINCT b.k FROM big b JOIN mine m ON b.k = m.k").fetchall() == [(3,)]
    ours.rollback()
    assert not held


@pytest.mark.usefixtures("eager")
def test_errors_refer_to_the_original_statement(both: tuple[ld.Connection, Any]) -> None:
    ours, _ = both
    with pytest.raises(duckdb.BinderException, match="nothing"):
        ours.execute("SELECT b.nothing FROM big b JOIN tiny t ON b.k = t.k")
    with pytest.raises(duckdb.BinderException, match="Ambiguous"):
        ours.execute("SELECT b.k FROM big b JOIN small t ON k = t.v")
    assert ours.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.usefixtures("eager")
def test_results_become_tables_and_files(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, plain = both
    query = "SELECT b.k, b.v FROM big b JOIN tiny t ON b.k = t.k"
    ours.execute(f"CREATE OR REPLACE TEMP TABLE kept AS {query}")
    ours.execute(f"INSERT INTO kept {query}")
    expected = plain.execute(query).fetchall() * 2
    assert held == ([True, True] if SPEAKS_SOURCE else [])
    assert _sorted(ours.execute("FROM kept").fetchall()) == _sorted(expected)


def test_joins_of_small_tables_are_not_narrowed(both: tuple[ld.Connection, Any], held: list[bool]) -> None:
    ours, _ = both
    ours.execute("SELECT b.k FROM big b JOIN tiny t ON b.k = t.k").fetchall()
    assert not held


@pytest.mark.usefixtures("eager")
def test_explain_shows_how_joined_tables_are_read(both: tuple[ld.Connection, Any]) -> None:
    ours, _ = both
    query = "SELECT b.k FROM big b JOIN (VALUES (3)) v(k) ON b.k = v.k"
    (first, _), (key, text) = ours.execute(f"EXPLAIN {query}").fetchall()
    assert (first, key) == ("physical_plan", "lance_plan")
    assert "filter: k IN (3)" in text
    assert "big.lance" in text
    rows = ours.sql(f"EXPLAIN ANALYZE {query}").fetchall()
    assert rows[-1][0] == "lance_plan"
    assert "returned: " in rows[-1][1]
    assert ours.execute("EXPLAIN SELECT 1").fetchall()[-1][0] == "physical_plan"


def test_explain_names_the_index_of_a_filter(both: tuple[ld.Connection, Any]) -> None:
    ours, _ = both
    for columns in ("id", "count(*)"):
        text = ours.execute(f"EXPLAIN SELECT {columns} FROM ids WHERE id = 3").fetchall()[-1][1]
        assert "filter: id = 3" in text
        assert "id_idx" in text
    text = ours.execute("EXPLAIN SELECT id FROM ids WHERE v = 3").fetchall()[-1][1]
    assert "ids.lance" in text
    assert "_idx" not in text


def test_a_count_by_key_reads_no_columns(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = both
    read: list[str] = []
    reading = FragmentReader.read

    def noted(reader: Any, wanted: Any, rows: Any) -> Any:
        read.extend(column.name for column in wanted)
        return reading(reader, wanted, rows)

    sql = "SELECT count(*) FROM ids WHERE id BETWEEN 3 AND 7"
    assert ours.execute(sql).fetchall() == [(5,)]  # also decides whether filtering first pays
    monkeypatch.setattr(FragmentReader, "read", noted)
    assert ours.execute(sql).fetchall() == [(5,)]
    assert read == [] or not SPEAKS_SOURCE  # DuckDB 1.x also requests the filter column


def test_narrowing_is_decided_from_the_statement_alone() -> None:
    def key_joins(sql: str) -> tuple[join_keys.KeyJoin, ...]:
        return tuple(join for joins in join_keys.find(Statement.of(sql)) for join in joins.joins)

    (found,) = key_joins("SELECT * FROM big b JOIN tiny t ON t.v = ? AND b.k = t.k WHERE b.s = ? AND t.i > ?")[:1]
    assert (found.name, found.column, found.alias) == (("big",), "k", None)
    assert found.keys == 'SELECT "t"."k" AS key FROM "tiny" AS "t" WHERE ("t"."v" = $1) AND ("t"."i" > $3)'
    assert found.parameters == (("1", 1), ("3", 3))
    assert found.reads == {"tiny"}
    assert key_joins("SELECT 1 FROM big WHERE k IN (1, 2)") == ()
    assert key_joins("DELETE FROM big WHERE k IN (SELECT k FROM tiny)") == ()
    assert key_joins("SELECT * FROM big JOIN tiny USING (k); SELECT 1") == ()
    assert key_joins("CREATE VIEW v AS SELECT * FROM big JOIN tiny USING (k)") == ()
