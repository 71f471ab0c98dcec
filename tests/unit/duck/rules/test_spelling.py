from __future__ import annotations

import pytest

from lance_duck.duck.rules import spelling
from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.text import Statement

TABLES = {("t",), ("lance", "t"), ("odd name",), ("ü",)}


def is_table(parts: tuple[str, ...]) -> bool:
    return tuple(part.lower() for part in parts) in TABLES


def rewrite(sql: str) -> str:
    """Return the statement with the calls for tables of `TABLES`."""
    proposals = spelling.find(Statement.of(sql))
    return apply(sql, [each.edit for each in proposals if each.name is None or is_table(each.name)])


REWRITTEN = [
    ("SELECT * FROM 'a/x.lance'", "SELECT * FROM lance_scan('a/x.lance') AS \"x\""),
    ("FROM 's3://b/x.lance/' LIMIT 1", "FROM lance_scan('s3://b/x.lance/') AS \"x\" LIMIT 1"),
    (
        "FROM 'a.lance' AS z JOIN 'b.lance' y ON z.i = y.i WHERE s = 'c.lance'",
        "FROM lance_scan('a.lance') AS z JOIN lance_scan('b.lance') y ON z.i = y.i WHERE s = 'c.lance'",
    ),
    (
        "SELECT a IS DISTINCT FROM 'x.lance' FROM 'y.lance'",
        "SELECT a IS DISTINCT FROM 'x.lance' FROM lance_scan('y.lance') AS \"y\"",
    ),
    (
        "SELECT 'é', * FROM 'x.lance' WHERE é = 'ü.lance'",
        "SELECT 'é', * FROM lance_scan('x.lance') AS \"x\" WHERE é = 'ü.lance'",
    ),
    (
        "SELECT (SELECT 1 FROM 'x.lance') /* FROM 'z.lance' */, $$ FROM 'q.lance' $$ -- FROM 'r.lance'",
        "SELECT (SELECT 1 FROM lance_scan('x.lance') AS \"x\") /* FROM 'z.lance' */, $$ FROM 'q.lance' $$ "
        "-- FROM 'r.lance'",
    ),
    ("COPY (FROM 'x.lance') TO 'y.csv'", "COPY (FROM lance_scan('x.lance') AS \"x\") TO 'y.csv'"),
    ("FROM 'it''s.lance'", "FROM lance_scan('it''s.lance') AS \"it's\""),
    ("FROM t AT (VERSION => 3)", "FROM lance_scan('t', version := 3) AS \"t\""),
    (
        "from t at(version=>1+?) where i",
        "from lance_scan('t', version := coalesce((1+?)::VARCHAR, '')) AS \"t\" where i",
    ),
    ("FROM t AS z AT (VERSION => 3)", "FROM lance_scan('t', version := 3) AS z"),
    ("FROM t z AT (VERSION => 3)", "FROM lance_scan('t', version := 3) AS z"),
    ("FROM t AT (VERSION => 3) AS z", "FROM lance_scan('t', version := 3) AS z"),
    (
        "FROM T AT (TIMESTAMP => TIMESTAMP '2025-01-01') JOIN t b USING (i)",
        "FROM lance_scan('T', asof := coalesce((TIMESTAMP '2025-01-01')::VARCHAR, '')) AS \"T\" JOIN t b USING (i)",
    ),
    ("FROM lance.t AT (VERSION => 3)", "FROM lance_scan('t', version := 3) AS \"t\""),
    (
        'FROM "odd name" AT (VERSION => 2), ü AT (VERSION => 1)',
        "FROM lance_scan('odd name', version := 2) AS \"odd name\", lance_scan('ü', version := 1) AS \"ü\"",
    ),
    ("FROM 'x.lance' AT (VERSION => 2)", "FROM lance_scan('x.lance', version := 2) AS \"x\""),
    ("FROM 'x.lance' q AT (VERSION => 2)", "FROM lance_scan('x.lance', version := 2) AS q"),
    (
        "SELECT * FROM (t AT (VERSION => 1) JOIN 'x.lance' USING (i))",
        "SELECT * FROM (lance_scan('t', version := 1) AS \"t\" JOIN lance_scan('x.lance') AS \"x\" USING (i))",
    ),
]


@pytest.mark.parametrize(("before", "after"), REWRITTEN)
def test_paths_and_time_travel_become_lance_scan(before: str, after: str) -> None:
    assert rewrite(before) == after


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'x.lance' FROM t -- FROM 'y.lance'\n",
        "SELECT trim(LEADING 'a' FROM 'x.lance')",
        "SELECT extract(year FROM 'x.lance')",
        "SELECT a IS NOT DISTINCT FROM 'x.lance'",
        "COPY t FROM 'x.lance'",
        "DELETE FROM 'x.lance'",
        "INSERT INTO 'x.lance' VALUES (1)",
        "FROM other AT (VERSION => 3)",
        "FROM elsewhere.t AT (VERSION => 3)",
        "WITH t AS (SELECT 1) FROM t AT (VERSION => 3)",
        "WITH t AS MATERIALIZED (SELECT 1) FROM t AT (VERSION => 3)",
        "SELECT at(version => 1)",
        "SELECT 'from t at (version => 3)'",
        "FROM t AT (VERSION => 3",
        "FROM 'x.lance",
        "SELECT 1",
    ],
)
def test_other_text_is_unchanged(sql: str) -> None:
    assert rewrite(sql) == sql


def test_paths_are_found_in_plain_strings_only() -> None:
    sql = "DESCRIBE 'a/x.lance'; SELECT 'b.lance/', \"c.lance\", $$d.lance$$ -- 'e.lance'"
    assert Statement.of(sql).paths == ("a/x.lance", "b.lance/")


@pytest.mark.parametrize(
    ("sql", "database", "expected"),
    [
        ("FROM lance.versions('t')", "lance", "FROM lance_versions('t'\n, database := 'lance')"),
        (
            'SELECT 1 FROM "My DB".main.TABLE_CHANGES(?, 1, f(2)) AS c WHERE x',
            "My DB",
            "SELECT 1 FROM lance_table_changes(?, 1, f(2)\n, database := 'My DB') AS c WHERE x",
        ),
        ("FROM lance.info()", "lance", "FROM lance_info(database := 'lance')"),
    ],
)
def test_functions_of_a_database_are_called_with_its_name(sql: str, database: str, expected: str) -> None:
    (found,) = spelling.find(Statement.of(sql))
    assert (found.database, found.name) == (database, None)
    assert apply(sql, [found.edit]) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "FROM versions('t')",
        "FROM a.other.versions('t')",
        "SELECT t.files FROM t",
        "SELECT '.versions('",
        "FROM x.info(1",
    ],
)
def test_other_calls_are_unchanged(sql: str) -> None:
    assert spelling.find(Statement.of(sql)) == ()
