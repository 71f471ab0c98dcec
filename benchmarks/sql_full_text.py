"""How fast is `match` in SQL, in different clauses?

The contestant "each text" evaluates `match` for every string that DuckDB passes to it. `lance_fts` and Python's
`full_text_query` take part if they can express the question. The index belongs to `full_text_search.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks._texts import vocabulary
from benchmarks.full_text_search import table
from lance_duck.duck import planner
from lance_duck.duck.full_text import match_columns, matched_rows
from lance_duck.query import MatchQuery

_SEARCHES: Final = (match_columns.run, matched_rows.run)
_RULES: Final = planner.RULES
_ALONE: Final = tuple(replace(rule, run=lambda *_: None) if rule.run in _SEARCHES else rule for rule in _RULES)
Others = dict[str, str | Callable[[], object]]
"""A statement or a function by contestant."""


def main() -> None:
    """Race through statements."""
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=7)
    add_clock(parser)
    arguments = parser.parse_args()
    path = table(arguments.rows)
    con = ld.connect({"t": path, "u": _keys(arguments.rows)})
    asked = statements(ld.dataset(path))
    cases = []
    for name in chosen(asked, arguments.only):
        sql, others = asked[name]
        contestants = {name: other if callable(other) else partial(_run, con, other) for name, other in others.items()}
        contestants |= {OURS: partial(_run, con, sql), "each text": partial(_run, con, sql, searches=False)}
        cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Search {arguments.rows:,} texts with match in SQL", cases, arguments)


def statements(dataset: ld.LanceDataset) -> dict[str, tuple[str, Others]]:
    """Return statements by name, with equivalent peers."""
    common, middle, rare = (vocabulary()[i] for i in (60, 1_000, 20_000))

    def best(words: str) -> tuple[str, Others]:
        sql = f"SELECT id, score(t) AS s FROM t WHERE match(s, '{words}') ORDER BY score(t) DESC LIMIT 10"
        fts = f"SELECT id, _score FROM lance_fts('t', 's', '{words}', k := 10)"
        query = {"full_text_query": MatchQuery(words, "s"), "limit": 10}
        return sql, {"lance_fts": fts, "Python": partial(dataset.to_table, columns=["id", "_score"], **query)}

    def filtered(words: str) -> tuple[str, Others]:
        sql = f"SELECT id FROM t WHERE match(s, '{words}')"
        return sql, {"Python": partial(dataset.to_table, columns=["id"], filter=MatchQuery(words, "s"))}

    def alone(sql: str) -> tuple[str, Others]:
        return sql, {}

    is_middle = f"match(t.s, '{middle}')"
    return {
        "the best 10": best(middle),
        "WHERE, common": filtered(common),
        "WHERE": filtered(middle),
        "WHERE, rare": filtered(rare),
        "all scores": alone(f"SELECT id, score(t) FROM t WHERE {is_middle}"),
        "OR": alone(f"SELECT count(*) FROM t WHERE {is_middle} OR id % 100 = 3"),
        "NOT": alone(f"SELECT count(*) FROM t WHERE NOT {is_middle}"),
        "CASE": alone(f"SELECT sum(CASE WHEN {is_middle} THEN 1 ELSE 0 END) FROM t"),
        "join": alone(f"SELECT count(*) FROM t JOIN u ON t.id = u.n WHERE {is_middle}"),
        "LEFT JOIN": alone(f"SELECT count(t.id) FROM u LEFT JOIN t ON t.id = u.n AND {is_middle}"),
        "CTE": alone(f"WITH c AS (SELECT * FROM t WHERE {is_middle}) SELECT max(s), count(*) FROM c"),
        "CREATE TABLE AS": alone(f"CREATE OR REPLACE TEMP TABLE c AS SELECT * FROM t WHERE {is_middle}"),
    }


def _run(con: ld.Connection, sql: str, *, searches: bool = True) -> object:
    planner.RULES = _RULES if searches else _ALONE
    try:
        return con.execute(sql).fetchall()
    finally:
        planner.RULES = _RULES


def _keys(rows: int) -> str:
    """Write a table of each tenth id, unless it is there."""
    path = DATA / f"sql-full-text-keys-{rows}.lance"
    if not path.exists():
        ld.write_dataset(pa.table({"n": range(0, rows, 10)}), path)
    return str(path)


if __name__ == "__main__":
    main()
