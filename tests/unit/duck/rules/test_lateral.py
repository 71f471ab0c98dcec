from __future__ import annotations

import pytest

from lance_duck.duck.rules.lateral import find
from lance_duck.duck.statement.text import Statement

INNER = "(SELECT id FROM t ORDER BY array_distance(t.vec, q.v) LIMIT 3)"
PROPOSALS = [
    (f"SELECT * FROM q, LATERAL {INNER} m", ("q", "q", False)),
    (f"SELECT n FROM ns.other AS q LEFT JOIN LATERAL {INNER} m ON true WHERE n > 2", ("ns.other", "q", True)),
    (f"EXPLAIN SELECT n FROM q CROSS JOIN LATERAL {INNER} m", ("q", "q", False)),
]


@pytest.mark.parametrize(("sql", "outer"), PROPOSALS)
def test_a_lateral_search_is_proposed(sql: str, outer: tuple[str, str, bool]) -> None:
    (proposal,) = find(Statement.of(sql))
    assert (sql[proposal.start : proposal.end], proposal.alias, proposal.has_alias) == outer
    inner = proposal.inner
    assert sql[inner.place.start : inner.place.end + 9] == "t ORDER BY"
    assert (inner.column, inner.vector, inner.limit, inner.metric) == ("vec", "v", 3, "l2")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM q, u, LATERAL {INNER} m",
        f"SELECT * FROM (SELECT 1) q, LATERAL {INNER} m",
        f"WITH q AS (SELECT 1) SELECT * FROM q, LATERAL {INNER} m",
        "SELECT * FROM q, LATERAL (SELECT id FROM t ORDER BY id LIMIT 3) m",
    ],
)
def test_other_lateral_joins_are_not_proposed(sql: str) -> None:
    assert find(Statement.of(sql)) == ()
