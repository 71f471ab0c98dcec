"""The rewritten form of statements, before rules and after each rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.planner import RULES, Plan, Planner, Rule
from lance_duck.duck.rules import indexed_condition, repeated_tables
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

ROWS = 100_000
_SOURCE = re.compile(
    r'\(SELECT [^()]*(?:\("__lance_rows"\) )?FROM "?__(?:duckdb_source|lance_named)_\w+"?(?: LIMIT \d+)?\)'
)
_REQUEST = re.compile(r"""'\{"(?:table|columns)[^']*\}'""")
_GENERATED = re.compile(r"__lance_(match|group)_\w+")


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    folder = tmp_path_factory.mktemp("rules")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * ROWS) % 1009, pa.float32()), 2)
    numbers = np.arange(ROWS)
    texts = [f"a part {i}" if i % 100 == 0 else "b" for i in numbers]
    flags = [f"{i % 3}" for i in numbers]
    table = pa.table({"id": numbers, "g": numbers % 7, "body": texts, "note": texts, "v": vectors})
    dataset = ld.write_dataset(table, folder / "t.lance")
    for column, kind in (("id", "BTREE"), ("g", "BTREE"), ("body", "INVERTED")):
        dataset.create_scalar_index(column, kind)
    dataset.create_scalar_index("note", "NGRAM")
    ld.write_dataset(pa.table({"id": range(3), "x": range(3), "w": vectors[:3]}), folder / "u.lance")
    ld.write_dataset(pa.table({"a": flags, "b": flags}), folder / "few.lance")
    with ld.connect(folder) as connection:
        yield connection


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """The texts that the planner gets, and what rules make of them."""
    texts: list[tuple[str, str | None]] = []
    attempts, plan = Planner.attempts, Planner._plan

    def recorded_attempts(self: Planner, method: Any, lifted: Any, *args: Any, **options: Any) -> Any:
        texts.append((lifted.sql, None))
        return attempts(self, method, lifted, *args, **options)

    def recorded_plan(self: Planner, *args: Any, **options: Any) -> Plan | None:
        made = plan(self, *args, **options)
        if made is not None:
            text = _GENERATED.sub(r"__lance_\1_…", _SOURCE.sub("<rows>", made.sql))
            texts[-1] = (texts[-1][0], " ".join(text.split()))
        return made

    monkeypatch.setattr(Planner, "attempts", recorded_attempts)
    monkeypatch.setattr(Planner, "_plan", recorded_plan)
    return texts


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.find.__module__.rpartition(".")[2])
def test_a_rule_rewrites_its_example_as_documented(
    con: ld.Connection, planned: list[tuple[str, str | None]], rule: Rule
) -> None:
    if rule.find is repeated_tables.find and not SPEAKS_SOURCE:
        pytest.skip("DuckDB 1 opens each table by itself")
    if rule.find is indexed_condition.find_passed and SPEAKS_SOURCE:
        pytest.skip("DuckDB 2 asks the scan about each condition")
    parameters = [[1.0, 2.0]] if "?" in rule.example else None
    rows = con.execute(rule.example, parameters).fetchall()
    ((_, text),) = planned
    assert (rows != [], text) == (True, rule.becomes)


@pytest.mark.parametrize("table", ["t", "t AT (VERSION => 4)", "t AS t AT (VERSION => '4')"])
def test_match_at_a_version_uses_the_index_of_that_version(con: ld.Connection, table: str) -> None:
    plan = con.execute(f"EXPLAIN SELECT id FROM {table} WHERE match(body, 'part')").fetchall()
    assert "InvertedIndexQuery" in str(plan)


@pytest.mark.parametrize(
    "sql", ["PIVOT t ON g USING count(*) GROUP BY match(body, 'x')", "PIVOT t ON match(body, 'x')"]
)
def test_match_in_a_pivot_requires_a_subquery(con: ld.Connection, sql: str) -> None:
    with pytest.raises(ld.UnsupportedError, match=r"match of a table that the statement turns.*subquery"):
        con.execute(sql)


BEFORE_RULES = {
    # Named arguments, and values of settings.
    "FROM lance_scan('t', version = 1)": "FROM lance_scan('t', version := 1)",
    "SELECT current_setting('lance_nearest') AS \"current_setting('lance_ef')\" FROM u": (
        "SELECT 'auto' AS \"current_setting('lance_ef')\" FROM u"
    ),
    "SELECT current_setting('lance_ef')": "SELECT NULL AS \"current_setting('lance_ef')\"",
    # Calls of full text.
    "SELECT id FROM t WHERE match(note, 'part')": (
        """SELECT id FROM t WHERE __lance_match(["t"."note"], '{…}', ('part')::VARCHAR, '')"""
    ),
    "SELECT score(t) FROM t WHERE match(note, 'part')": (
        """SELECT __lance_score(["t"."note"], '{…}', ('part')::VARCHAR, '') AS "score(t)" """
        """FROM t WHERE __lance_match(["t"."note"], '{…}', ('part')::VARCHAR, '')"""
    ),
    "SELECT * FROM (SELECT id, body AS b FROM t) s WHERE match(s.b, 'part')": (
        """SELECT * EXCLUDE ("__lance_condition_0") FROM (SELECT id, body AS b , """
        """__lance_match(["t"."body"], '{…}', ('part')::VARCHAR, '') AS "__lance_condition_0" FROM t) s """
        """WHERE "s"."__lance_condition_0\""""
    ),
    # Row identifiers.
    "SELECT rowid, * FROM t": (
        """SELECT rowid, * EXCLUDE ("t"."rowid") FROM __lance_matching('"lance"."t"', '{…}') AS "t\""""
    ),
    "SELECT rowid FROM t AT (VERSION => 1)": """SELECT rowid FROM __lance_matching('"lance"."t"', '{…}') AS "t\"""",
    # Versions of a transaction.
    "BEGIN; DELETE FROM u WHERE id = 2; SELECT lance.u.x FROM lance.u, t AT (VERSION => 1)": (
        """SELECT "u".x FROM "u" AS "u", lance_scan('t', version := 1) AS "t\""""
    ),
}


@pytest.mark.parametrize(("sql", "text"), BEFORE_RULES.items())
def test_a_statement_becomes_this_before_rules_read_it(
    con: ld.Connection, planned: list[tuple[str, str | None]], sql: str, text: str
) -> None:
    con.execute(sql).fetchall()
    if con.in_transaction:
        con.rollback()
    assert " ".join(_REQUEST.sub("'{…}'", planned[-1][0]).split()) == text
