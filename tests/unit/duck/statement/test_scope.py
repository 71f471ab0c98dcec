from __future__ import annotations

import pytest

from lance_duck.duck.statement.scope import Scope, Scopes
from lance_duck.duck.statement.tokens import tokens_of


def read(sql: str) -> list[list[str]]:
    """Return the table names and paths of each SELECT with tables."""
    scopes = Scopes(tokens_of(sql))
    found = dict.fromkeys(scopes.scope_of(place) for place in range(len(scopes.tokens)))
    return [[_shown(scope, i) for i in range(len(scope.tables))] for scope in found if scope.tables]


def _shown(scope: Scope, i: int) -> str:
    table = scope.tables[i]
    version = "".join(f" @{name}={part.text}" for name, part in table.version)
    of = ".".join(table.name) if table.name else table.path
    return f"{table.alias}={of or '?'}{version}"


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT a FROM t JOIN u ON f(t.a, 3) = 2, lance.v w WHERE x", [["t=t", "u=u", "w=lance.v"]]),
        ('FROM "T" AS a, b: u SELECT *', [["a=T", "b=u"]]),
        ("SELECT * FROM (t JOIN u USING (x)), LATERAL (SELECT 1 FROM v) AS w", [["t=t", "u=u", "w=?"], ["v=v"]]),
        ("SELECT * FROM 'a/x.lance' AT (VERSION => 12) b", [["b=a/x.lance @version=12"]]),
        ("SELECT * FROM t b AT (TIMESTAMP => now() - e)", [["b=t @asof=now() - e"]]),
        ("FROM lance_scan('x.lance', version := 31)", [["=x.lance @version=31"]]),
        ("FROM lance_scan(p) a, range(3) r(i), (VALUES (1, 2)) v", [["a=?", "r=?", "v=?"]]),
        ("SELECT * FROM t AS a(x, y)", [["a=?"]]),
        ("SELECT * EXCEPT (a) FROM t EXCEPT SELECT * FROM u", [["t=t"], ["u=u"]]),
        ("SELECT extract(year FROM d), x IS DISTINCT FROM y FROM t", [["t=t"]]),
        ("SELECT (SELECT max(x) FROM u) FROM t WHERE EXISTS (FROM w)", [["t=t"], ["u=u"], ["w=w"]]),
        ("UPDATE t SET x = 1, y = 2 FROM u WHERE z", [["t=t", "u=u"]]),
        ("DELETE FROM t AS d USING u WHERE x", [["d=t", "u=u"]]),
        ("MERGE INTO t USING (FROM u) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 3", [["t=t", "s=?"], ["u=u"]]),
        ("INSERT INTO t (a, b) SELECT a, b FROM u WHERE x", [["u=u"]]),
        ("CREATE OR REPLACE VIEW v AS SELECT * FROM t", [["t=t"]]),
        ("SELECT * FROM t USING SAMPLE 10%", [["t=t"]]),
        ("SELECT * FROM t JOIN u ON x IN [y, z] WHERE [1, w][1]", [["t=t", "u=u"]]),
        ("SELECT * FROM t JOIN u ON {'a': x, 'b': y} = z, v", [["t=t", "u=u", "v=v"]]),
        ("SELECT * FROM 'a/x.csv' ORDER BY id", [["x=?"]]),
        ("INSERT INTO t TABLE u", [["u=u"]]),
        ("CREATE TABLE t AS TABLE u", [["u=u"]]),
        ("SELECT * FROM (DESCRIBE t), (SUMMARIZE u)", [["=?", "=?"], ["t=t"], ["u=u"]]),
        ("CREATE TABLE t (a INTEGER)", []),
        ("SELECT a AS table FROM t", [["t=t"]]),
        ("PIVOT t ON a USING sum(b) GROUP BY c", [["t=t"]]),
        ("UNPIVOT (FROM t) AS x ON a, b INTO NAME n VALUE v", [["x=?"], ["t=t"]]),
        ("FROM t JOIN u PIVOT (max(a) FOR b IN (1, 2)) AS p ON c", [["t=t", "u=u", "p=?"]]),
        ("WITH c AS (DELETE FROM t WHERE x RETURNING y) SELECT * FROM c, u", [["c=?", "u=u"], ["t=t"]]),
        ("WITH c AS (UPDATE t SET a = 1 RETURNING y) FROM c", [["c=?"], ["t=t"]]),
        ("MERGE INTO t USING (u JOIN v ON x) ON y WHEN MATCHED THEN DELETE", [["t=t", "u=u", "v=v"]]),
        ("SELECT CASE WHEN x THEN (SELECT 1) ELSE 2 END FROM t, u", [["t=t", "u=u"]]),
    ],
)
def test_tables_of_each_select_are_found(sql: str, tables: list[list[str]]) -> None:
    assert read(sql) == tables


def test_cte_names_and_columns_are_found() -> None:
    sql = "WITH RECURSIVE a(x) AS (SELECT 1), B AS NOT MATERIALIZED (FROM a) SELECT c AS d FROM b"
    scopes = Scopes(tokens_of(sql))
    end = len(scopes.tokens) - 1
    ctes = {name: scopes.cte(name, end) for name in "abcd"}
    assert [name for name, cte in ctes.items() if cte is not None] == ["a", "b"]
    queries = [cte.query and [t.text for t in scopes.tokens[slice(*cte.query)]] for cte in ctes.values() if cte]
    assert queries == [None, ["FROM", "a"]]


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("WITH t AS (FROM t) FROM t", [["t=?"], ["t=t"]]),
        ("WITH RECURSIVE t AS (FROM t) FROM t", [["t=?"], ["t=t"]]),
        ("WITH RECURSIVE t AS (FROM t UNION FROM t) FROM t", [["t=?"], ["t=t"], ["t=?"]]),
        ("WITH RECURSIVE t AS ((FROM t UNION ALL FROM t)) FROM t", [["t=?"], ["t=t"], ["t=?"]]),
        ("WITH RECURSIVE t AS (FROM t UNION BY NAME FROM t) FROM t", [["t=?"], ["t=t"], ["t=t"]]),
        ("WITH RECURSIVE t AS (FROM u UNION FROM u EXCEPT FROM t) FROM t", [["t=?"], ["u=u"], ["u=u"], ["t=t"]]),
        ("WITH RECURSIVE t(a) USING KEY (a) AS (FROM u UNION FROM t) FROM t", [["t=?"], ["u=u"], ["t=?"]]),
        ("SELECT 1 FROM t WINDOW w AS (), u AS (PARTITION BY a) UNION FROM u", [["t=t"], ["u=u"]]),
        ("WITH a AS (FROM b), b AS MATERIALIZED (FROM a) FROM b", [["b=?"], ["b=b"], ["a=?"]]),
        ("SELECT * FROM (WITH t AS (SELECT 1) FROM t) z, t", [["z=?", "t=t"], ["t=?"]]),
        ("WITH t AS (SELECT 1) FROM t; FROM t", [["t=?"], ["t=t"]]),
        ("WITH t AS (SELECT 1) FROM t, s.t", [["t=?", "t=s.t"]]),
    ],
)
def test_a_name_means_a_common_table_expression_behind_its_query(sql: str, tables: list[list[str]]) -> None:
    assert read(sql) == tables


def test_a_subquery_refers_to_its_outer_select() -> None:
    scopes = Scopes(tokens_of("SELECT 1 FROM t WHERE x IN (SELECT y FROM u)"))
    inner = scopes.scope_of(len(scopes.tokens) - 2)
    assert [table.alias for table in inner.tables] == ["u"]
    assert inner.outer is not None
    assert [table.alias for table in inner.outer.tables] == ["t"]
    assert scopes.scope_of(len(scopes.tokens) - 1) is inner.outer


@pytest.mark.parametrize(
    "sql", ["", "SELECT (", "FROM", "FROM t AS", "FROM t AT (VERSION", ")) SELECT 1", "FROM a.", "FROM '", "FROM ''"]
)
def test_invalid_statements_do_not_raise(sql: str) -> None:
    Scopes(tokens_of(sql))


def test_parenthesised_joins_are_not_queries() -> None:
    tokens = tokens_of("SELECT * FROM ((SELECT a FROM t) AS x SEMI JOIN u ON a = b) WHERE c")
    outer = Scopes(tokens).scope_of(0)
    assert [(table.alias, table.query is not None) for table in outer.tables] == [("x", True), ("u", False)]
    queries = ("((SELECT a FROM t))", "((SELECT a FROM t) UNION (SELECT b FROM u))", "((SELECT a FROM t) LIMIT 3)")
    for query in queries:
        assert Scopes(tokens_of(f"SELECT * FROM {query} AS x")).is_query(3)


@pytest.mark.parametrize(
    ("sql", "aliases"),
    [
        ("WITH c AS (SELECT 1) SELECT c.a FROM c, c AS d WHERE d.a = c.b", ["c", "d"]),
        ("WITH c AS (SELECT 1), e AS (FROM c) FROM c JOIN e", ["c", "c"]),
        ("WITH c AS (FROM c) SELECT 1 FROM c AS x", ["x"]),
        ("WITH c AS (SELECT 1) SELECT c FROM c", None),  # its rows as values
        ("WITH c AS (SELECT 1) SELECT 1 FROM c, c AS x(y)", None),  # columns with other names
        ("SELECT 1 FROM (SELECT 2) AS c", ["c"]),
    ],
)
def test_all_readers_of_a_cte_are_found(sql: str, aliases: list[str] | None) -> None:
    scopes = Scopes(tokens_of(sql))
    read = next(table for table in scopes.tables if table.query is not None)
    readers = scopes.readers(read)
    assert (None if readers is None else [table.alias for _, table in readers]) == aliases


@pytest.mark.parametrize(
    ("sql", "hidden"),
    [
        ("FROM t JOIN u PIVOT (max(a) FOR b IN (1)) p ON c", ["u"]),
        ("FROM t JOIN u USING (c) PIVOT (max(a) FOR b IN (1)) p", ["t", "u"]),
        ("FROM t CROSS JOIN u PIVOT (max(a) FOR b IN (1)) p", ["t", "u"]),
        ("FROM s, (t JOIN u ON c) UNPIVOT INCLUDE NULLS (v FOR k IN (a)) p", ["t", "u"]),
        ("FROM s, t PIVOT (max(a) FOR b IN (1)) p", ["t"]),
        ("FROM t SEMI JOIN u ON c", ["u"]),
        ("TABLE t", ["t"]),
        ("PIVOT t ON a USING sum(b)", ["t"]),
    ],
)
def test_tables_hidden_from_every_select_are_found(sql: str, hidden: list[str]) -> None:
    assert [table.alias for table in Scopes(tokens_of(sql)).tables if table.is_hidden] == hidden
