"""Long and deeply nested SQL texts are refused before anything parses them."""

from __future__ import annotations

import re

import pytest

from lance_duck.duck import confinement, failures
from lance_duck.serve.gate import text_size
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.statements import check_sql_size

BEGINS = ("Table with name ", "Table with name a/", 'Permission Error: Cannot access file "', "No function matches ")


MANY = {
    "the brackets are nested too deeply: expected at most 200 levels, found 201; split": "SELECT " + "(" * 201,
    "the lists are nested too deeply: expected at most 12 levels, found 13; pass": "SELECT " + "(" * 9 + "[{a:(" * 9,
    "has too many words and signs: expected at most 20000, found 20001; pass": "SELECT" + " x" * 20_000,
    "a name has too many parts: expected at most 100, found 101; name": "SELECT 1, " + 'x."y".' * 50 + "z",
    "too many set operations: expected at most 500, found 501; split": "SELECT 1" + " UNION ALL SELECT 1" * 501,
    "reads too many tables: expected at most 50, found 51; split": "SELECT 1, 2 FROM t" + ", t" * 25 + " JOIN t" * 25,
    "too many lambdas are inside each other: expected at most 6 levels, found 7; split": (
        "SELECT " + "f(x, lambda a: " * 7 + "a" + ")" * 7
    ),
}


@pytest.mark.parametrize("problem", MANY)
def test_too_many_parts_of_a_kind_are_refused(problem: str) -> None:
    with pytest.raises(RequestError, match=re.escape(problem)):
        check_sql_size(MANY[problem])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 UNION FROM t" + ", t" * 51,
        "SELECT 1" + " UNION DISTINCT FROM t, t" * 51,
        "SELECT " + "extract(year FROM (SELECT x FROM t, t))" * 51,
        "SELECT x FROM t" + " JOIN (SELECT 1 UNION FROM t)" * 51,
        "SELECT " + ", ".join("(SELECT max(x) FROM t)" for _ in range(51)),
        "SELECT " + ", ".join("(SELECT 1 AS union FROM t)" for _ in range(51)),
        "SELECT " + ", ".join("(SELECT * EXCEPT (x) FROM t)" for _ in range(51)),
    ],
)
def test_tables_are_counted_in_all_parts_of_a_statement(text: str) -> None:
    with pytest.raises(RequestError, match="too many tables"):
        check_sql_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "x->" * 12 + "x",
        "SELECT " + "f(a->" * 11 + "a" + ")" * 11,
        "SELECT " + "[a FOR a IN " * 11 + "[1]" + "]" * 11,
        "SELECT " + "[" * 11 + "a" + " FOR a IN [1]]" * 11,
        "SELECT " + "lambda a: " * 11 + "1",
        "SELECT " + "f(lambda a: " * 11,
    ],
)
def test_all_forms_of_lambdas_inside_each_other_are_counted(text: str) -> None:
    with pytest.raises(RequestError, match="too many lambdas"):
        check_sql_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(f"list_transform(x, lambda a: a + {i})" for i in range(500)),
        "SELECT " + ", ".join(f"j->'a'->{i}->>'b'" for i in range(500)),
        "SELECT " + ", ".join(f"t.s.a{i}.b" for i in range(500)) + " FROM t",
        "SELECT x FROM t WHERE x IN (" + ", ".join(map(str, range(9000))) + ")",
        "INSERT INTO t VALUES " + ", ".join(f"({i})" for i in range(4000)),
        "SELECT x FROM t GROUP BY " + ", ".join(f"x + {i}" for i in range(500)),
        "SELECT " + ", ".join(f"[{{'a': {i}}}]" for i in range(500)),
        "SELECT x FROM t ORDER BY " + ", ".join("x" for _ in range(500)),
        "SELECT 'x.y' + 1.5, " + ", ".join("1.5" for _ in range(500)),
        "SELECT x FROM t WHERE " + " AND ".join(f"t.c{i} IS NOT NULL" for i in range(500)),
        "SELECT a IS DISTINCT FROM b, " + ", ".join(f"c{i} IS NOT DISTINCT FROM c, d" for i in range(500)) + " FROM t",
        "SELECT " + ", ".join(f"extract(year FROM c{i}), trim(both 'x' FROM c{i})" for i in range(500)) + " FROM t",
        "SELECT " + "substring(" * 100 + "x" + " FROM 1 FOR 2)" * 100 + " FROM t",
        "INSERT INTO t SELECT * FROM u RETURNING " + ", ".join(f"c{i}" for i in range(500)),
        " UNION ALL ".join(f"SELECT 'c{i}', count(c{i}) FROM t" for i in range(500)),
    ],
    ids=range(15),
)
def test_long_texts_of_many_small_parts_are_accepted(text: str) -> None:
    check_sql_size(text)


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    brackets = "(" * 10_000
    check_sql_size(f"SELECT '{brackets}' AS x /* {brackets} */ FROM \"{brackets}\" -- {brackets}")
    check_sql_size("SELECT " + "(1) + " * 4900 + "1")


def test_a_long_text_is_refused_and_names_parameters() -> None:
    check_sql_size("x" * text_size.LONGEST)
    with pytest.raises(RequestError, match=r"at most 65536 characters.*as parameters"):
        check_sql_size("x" * (text_size.LONGEST + 1))


@pytest.mark.parametrize("pattern", [failures._MISSING, confinement._MISSING, failures._REFUSED])
def test_patterns_of_errors_stop_at_the_next_begin(pattern: re.Pattern[str]) -> None:
    begin = pattern.pattern.partition("(")[0].replace("\\", "")
    end = {failures._REFUSED: '" - file system operations are disabled by configuration'}
    found = pattern.search(f"{begin}far/away {begin}near/by{end.get(pattern, ' does not exist!')}")
    assert found is not None
    assert "near/by" in found[0]
    assert "far/away" not in found[0]


@pytest.mark.parametrize("begin", BEGINS)
def test_no_pattern_finds_an_error_in_a_text_of_begins(begin: str) -> None:
    patterns = (failures._MISSING, confinement._MISSING, failures._REFUSED, failures._LISTS_TO_ARRAYS)
    text = begin * ((1 << 20) // len(begin))
    assert not [pattern for pattern in patterns if pattern.search(text)]
