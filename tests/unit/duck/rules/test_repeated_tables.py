"""Tables that a statement references more than once, found from its text."""

from __future__ import annotations

import pytest

from lance_duck.duck.rules.repeated_tables import find
from lance_duck.duck.statement.text import Statement


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("SELECT * FROM t", []),
        ("SELECT * FROM t, u", []),
        ("SELECT * FROM t a JOIN t b USING (k)", ["t", "t"]),
        ("SELECT * FROM t a, lance.T b, u", ["t", "lance.T"]),
        ("SELECT * FROM t WHERE k > (SELECT avg(k) FROM t)", ["t", "t"]),
        ("EXPLAIN FROM t UNION FROM t", ["t", "t"]),
        ("WITH c AS (FROM t) SELECT * FROM c JOIN c AS d USING (k)", []),
        ("WITH t AS (SELECT 1 AS k) SELECT * FROM t JOIN t AS d USING (k)", []),
        ("SELECT (SELECT max(k) FROM t) FROM t", []),  # the text becomes the column name
        ("SELECT (SELECT max(k) FROM t) AS m FROM t", ["t", "t"]),
        ("SELECT lance.t.k FROM lance.t JOIN t AS b USING (k)", []),
        ("SELECT * FROM t TABLESAMPLE 5 ROWS JOIN t AS b USING (k)", []),
        ("SELECT * FROM t a JOIN t(k) b USING (k)", []),
        ("SELECT 'from t, t'", []),
        ("CREATE VIEW v AS FROM t UNION FROM t", []),
    ],
)
def test_repeated_tables_are_found_with_their_offsets(sql: str, places: list[str]) -> None:
    found = [sql[place.start : place.end] for each in find(Statement.of(sql)) for place in each.places]
    assert found == places
