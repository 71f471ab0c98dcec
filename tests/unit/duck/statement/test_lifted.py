from __future__ import annotations

import pytest

from lance_duck.duck.statement.lifted import LiftedText, lifted_numbers


@pytest.mark.parametrize(
    ("sql", "text", "numbers"),
    [
        ("SELECT * FROM t WHERE id = 5", "SELECT * FROM t WHERE id = ?", (5,)),
        (" select a2 + 3 from t where T.id7=07 ;\n", " select a2 + 3 from t where T.id7=? ;\n", (7,)),
        (
            "SELECT a FROM t WHERE id IN (1, 22,333) AND k = 4",
            "SELECT a FROM t WHERE id IN (?, ?,?) AND k = ?",
            (1, 22, 333, 4),
        ),
        (
            "SELECT a FROM t WHERE a = 1 UNION ALL SELECT b FROM t WHERE b = 2",
            "SELECT a FROM t WHERE a = 1 UNION ALL SELECT b FROM t WHERE b = ?",
            (2,),
        ),
    ],
)
def test_numbers_in_the_last_where_are_lifted(sql: str, text: str, numbers: tuple[int, ...]) -> None:
    assert lifted_numbers(sql) == (LiftedText(text), numbers)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE id = 5 OR id = 6",
        "SELECT * FROM t WHERE id = 5 LIMIT 1",
        "SELECT * FROM t WHERE id = 5.0",
        "SELECT * FROM t WHERE id = 5e3",
        "SELECT * FROM t WHERE id = 1_000",
        "SELECT * FROM t WHERE id = 0x10",
        "SELECT * FROM t WHERE id = -5",
        "SELECT * FROM t WHERE id = 1234567890123456789",
        "SELECT * FROM t WHERE id = 5 -- AND k = 6",
        "SELECT * FROM t /* WHERE */ WHERE id = 5",
        "SELECT * FROM t WHERE s = '5' AND id = 5",
        'SELECT "a" FROM t WHERE id = 5',
        "SELECT ? FROM t WHERE id = 5",
        "SELECT $1 FROM t WHERE id = 5",
        "SELECT * FROM t WHERE id NOT IN (5, 6)",
        "SELECT * FROM t WHERE id BETWEEN 1 AND id = 5",
        "SELECT * FROM t WHERE id IN (SELECT 5)",
        "SELECT * FROM t WHERE id IN ()",
        "UPDATE t SET a = 1 WHERE id = 5",
        "WITH q AS (SELECT 1) SELECT * FROM q WHERE id = 5",
        "SELECT * FROM t WHERE id = 5; SELECT * FROM t WHERE id = 5 OR TRUE",
    ],
)
def test_other_numbers_are_not_lifted(sql: str) -> None:
    assert lifted_numbers(sql) is None


def test_number_lists_are_lifted_out_of_the_statement() -> None:
    lifted = LiftedText.of("SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]")
    assert lifted.text == "SELECT '[1, 2]', $__lance_v0, 'x', $__lance_v1"
    assert lifted.lists == ("[1,-2.5e3]", "[ 3 , 4 ]")
    assert lifted.restored(lifted.text) == "SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]"
