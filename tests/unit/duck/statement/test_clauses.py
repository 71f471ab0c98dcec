from __future__ import annotations

import pytest

from lance_duck.duck.statement.clauses import Clauses, TableName, closing, divided, statements_of, stem
from lance_duck.duck.statement.tokens import tokens_of

WORDS = ("set", "from", "where", "returning")


def cut(sql: str) -> list[str] | None:
    clauses = Clauses.of(sql).cut(*WORDS)
    return None if clauses is None else [clause.text for clause in clauses]


CUT = [
    ("SET a = 1", ["SET a = 1\n", "", "", ""]),
    ("SET a = 1 WHERE b", ["SET a = 1\n", "", "WHERE b\n", ""]),
    ("set a=1 from s where x returning *", ["set a=1\n", "from s\n", "where x\n", "returning *\n"]),
    ("SET a = (SELECT 1 FROM s WHERE t) WHERE b", ["SET a = (SELECT 1 FROM s WHERE t)\n", "", "WHERE b\n", ""]),
    (
        "SET a = CASE WHEN b THEN [x FOR x IN l] ELSE {'from': 1} END WHERE c",
        ["SET a = CASE WHEN b THEN [x FOR x IN l] ELSE {'from': 1} END\n", "", "WHERE c\n", ""],
    ),
    ("SET a = CASE b WHEN 1 THEN CASE WHEN c THEN 2 END END WHERE d", None),
    ("SET a = 1 -- WHERE b\nWHERE c", ["SET a = 1 -- WHERE b\n", "", "WHERE c\n", ""]),
    ("SET a = 1 /* FROM x */ RETURNING a -- end", ["SET a = 1 /* FROM x */\n", "", "", "RETURNING a -- end\n"]),
    ("SET a = 'it''s FROM' WHERE \"where\" = $$ FROM $$", None),
    ("SET a = 12.5e3WHERE b", ["SET a = 12.5e3\n", "", "WHERE b\n", ""]),
    ("SET a = t.where, b = CASE WHEN t.end THEN 1 END WHERE c", None),
    ("SET é = 'ü' WHERE ö > 1", ["SET é = 'ü'\n", "", "WHERE ö > 1\n", ""]),
    ('SET a = t."case" WHERE t.case = 1', ['SET a = t."case"\n', "", "WHERE t.case = 1\n", ""]),
]
EXPECTED = {
    "SET a = t.where, b = CASE WHEN t.end THEN 1 END WHERE c": [
        "SET a = t.where, b = CASE WHEN t.end THEN 1 END\n",
        "",
        "WHERE c\n",
        "",
    ],
    "SET a = CASE b WHEN 1 THEN CASE WHEN c THEN 2 END END WHERE d": [
        "SET a = CASE b WHEN 1 THEN CASE WHEN c THEN 2 END END\n",
        "",
        "WHERE d\n",
        "",
    ],
    "SET a = 'it''s FROM' WHERE \"where\" = $$ FROM $$": [
        "SET a = 'it''s FROM'\n",
        "",
        'WHERE "where" = $$ FROM $$\n',
        "",
    ],
}


@pytest.mark.parametrize(("sql", "expected"), CUT)
def test_clause_keywords_inside_brackets_are_ignored(sql: str, expected: list[str] | None) -> None:
    assert cut(sql) == (EXPECTED[sql] if expected is None else expected)


@pytest.mark.parametrize("sql", ["a = 1 SET b = 2", "FROM s SET a = 1 x", "(SET a = 1)"])
def test_text_without_a_leading_clause_is_not_split(sql: str) -> None:
    assert Clauses.of(sql).cut("set", "where") is None


def test_an_empty_text_has_empty_clauses() -> None:
    assert cut("") == ["", "", "", ""]


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("a, b", ["a\n", "b\n"]),
        ("(1, 2), (3, [4, 5])", ["(1, 2)\n", "(3, [4, 5])\n"]),
        ("f(a, b) -- c, d\n, CASE WHEN x THEN 1, 2 END", ["f(a, b) -- c, d\n", "CASE WHEN x THEN 1, 2 END\n"]),
        ("'a,b', \"c,d\", $$e,f$$", ["'a,b'\n", '"c,d"\n', "$$e,f$$\n"]),
        ("", []),
    ],
)
def test_lists_are_split_at_top_level_commas(sql: str, pieces: list[str]) -> None:
    assert [piece.text for piece in Clauses.of(sql).split()] == pieces


def test_statements_are_split_at_semicolons() -> None:
    texts = [statement.text for statement in statements_of("; BEGIN; SELECT ';' -- ;\n;; COMMIT /* ; */ ;")]
    assert texts == ["BEGIN\n", "SELECT ';' -- ;\n", "COMMIT /* ; */\n"]


@pytest.mark.parametrize(
    ("sql", "parts", "path", "alias"),
    [
        ("t WHERE", ("t",), None, "t"),
        ("lance.main.t AS z WHERE", ("lance", "main", "t"), None, "z"),
        ('"odd ""name" z', ('odd "name',), None, "z"),
        ("'dir/x.lance' WHERE", ("x",), "dir/x.lance", "x"),
        ("'it''s.lance/' z", ("it's",), "it's.lance/", "z"),
    ],
)
def test_table_names_are_read_with_their_alias(sql: str, parts: tuple[str, ...], path: str | None, alias: str) -> None:
    clauses = Clauses.of(sql)
    name = TableName.at(clauses, 0)
    assert name is not None
    assert (name.parts, name.path, name.alias(clauses, "where")[0]) == (parts, path, alias)


def test_a_string_with_another_extension_is_not_a_table() -> None:
    assert TableName.at(Clauses.of("'x.csv'"), 0) is None
    assert stem("s3://b/dir/x.lance/") == "x"


def test_lists_are_split_outside_parentheses_and_case() -> None:
    parts = divided(tokens_of("a = (1, 2), b = [3, 4], c = CASE WHEN x THEN 1 END, (d, e) = (5, 6)"), ",")
    assert [part[0].text + part[-1].text for part in parts] == ["a)", "b]", "cEND", "()"]


def test_an_opening_parenthesis_finds_its_closing_one() -> None:
    tokens = tokens_of("f(a[1], (b))")
    assert closing(tokens, 1) == len(tokens) - 1
    assert closing(tokens_of("f(a"), 1) is None
