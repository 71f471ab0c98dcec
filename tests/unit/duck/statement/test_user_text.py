"""Errors in rebuilt statements refer to the statement as the user wrote it."""

from __future__ import annotations

import pytest

from lance_duck.duck.statement.user_text import user_message


def drawn(message: str, place: int, line: str, marks: int = 1) -> str:
    return f"{message}\n\n{line}\n{' ' * place}{'^' * marks}"


@pytest.mark.parametrize(
    ("message", "sql", "expected"),
    [
        pytest.param(
            drawn("Bad 'abc'", 31, "LINE 1: SELECT * FROM (VALUES (CAST(('abc'", 11),
            "INSERT INTO t VALUES ('abc', 1)",
            drawn("Bad 'abc'", 30, "LINE 1: INSERT INTO t VALUES ('abc', 1)", 5),
            id="a value in a cast",
        ),
        pytest.param(
            drawn("Bad 'q'", 55, 'LINE 5: SELECT "t"."__lance_address_01", CAST((\'q\'', 3),
            "UPDATE t\n  SET x = 'r', y = 2",
            "Bad 'q'",
            id="a place that is nowhere in the statement",
        ),
        pytest.param(
            drawn("Bad", 31, "LINE 1: SELECT * FROM (VALUES (CAST(('abc'", 11),
            "INSERT INTO t VALUES ('abc', 'abc')",
            "Bad",
            id="a value that stands there twice",
        ),
        pytest.param(
            drawn("Bad", 25, "LINE 3: WHEN MATCHED AND nope THEN DELETE", 4),
            "MERGE INTO t\nUSING u ON true WHEN MATCHED AND nope THEN DELETE",
            drawn("Bad", 41, "LINE 2: USING u ON true WHEN MATCHED AND nope THEN DELETE", 4),
            id="a clause that is there as it was drawn",
        ),
        pytest.param(
            'No column "nope"\nCandidate bindings: "id", "__lance_address_01"',
            "UPDATE t SET x = nope",
            'No column "nope"\nCandidate bindings: "id"',
            id="candidates with the address",
        ),
        pytest.param(
            'No column "nope"\nCandidate bindings: "__lance_address_01"',
            "UPDATE t SET x = nope",
            'No column "nope"',
            id="no other candidate",
        ),
        pytest.param(
            'Binder Error: column "__lance_address_01" must appear in the GROUP BY clause\nEither add it',
            "UPDATE t SET x = count(*)",
            "Binder Error: aggregate functions are not supported here",
            id="an aggregate",
        ),
        pytest.param(
            "Could not convert 'a' when casting from source column c12",
            "INSERT INTO t SELECT 'a'",
            "Could not convert 'a'",
            id="a column that has another name",
        ),
        pytest.param('Table "__lance_twin" has no "x"', "UPDATE t SET x = 1", 'Table t has no "x"', id="a twin"),
        pytest.param("Division by zero", "UPDATE t SET x = 1 // 0", "Division by zero", id="nothing of ours"),
    ],
)
def test_a_message_is_about_the_statement_of_the_user(message: str, sql: str, expected: str) -> None:
    assert user_message(message, sql, "t") == expected


def test_an_error_in_a_long_line_shows_only_the_part_around_it() -> None:
    sql = f"INSERT INTO t VALUES {'(1, 2), ' * 50}('abc', 2){', (1, 2)' * 50}"
    message = user_message(drawn("Bad", 31, "LINE 1: SELECT * FROM (VALUES (CAST(('abc'", 11), sql, "t")
    _, _, line, marks = message.split("\n")
    assert len(line) < 160
    assert line[marks.index("^") : len(marks)] == "'abc'"
