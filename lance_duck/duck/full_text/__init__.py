"""Full-text search in plain SQL: `match`, `match_phrase` and `score`, which DuckDB lacks.

    SELECT *, score(t) FROM t WHERE match(body, 'duck lake') ORDER BY score(t) DESC LIMIT 10

You hold: the user's statement. You get: a statement with functions of this package instead of these calls. Each
function takes a column of a Lance table and the table's name, so later steps (changes of tables, views, the planner)
see ordinary SQL. Steps: `statement/scope` (the tables of each SELECT, from tokens) → `calls` (calls and their
arguments, pure) → `rewrite` (table lookup, edits) → `tables/text_functions` (the functions that DuckDB calls).

These steps already return correct results. The planner makes them fast: `match_columns` lets the index compute the
calls as scan columns, and `matched_rows` finds the best rows of an ORDER BY … LIMIT in advance. If a column passes
through other queries (`origins`), its calls are pushed down to the SELECT that reads the table (`carried_calls`), also
through views (`inlined_views`). If DuckDB rejects the result, the calls stay unchanged.
Never here: tokenization into terms, and scoring.
"""
