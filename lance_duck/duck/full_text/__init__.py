"""Full text in plain SQL: `match`, `match_phrase` and `score` where DuckDB has no such functions.

    SELECT *, score(t) FROM t WHERE match(body, 'duck lake') ORDER BY score(t) DESC LIMIT 10

You hold: a statement as it was given. You get: one with functions of ours in the places of those calls, each of which
has a column of a Lance table and says which, so that whatever follows (changes of tables, views, the planner) has
ordinary SQL. The way: `scopes` (which tables each SELECT reads, by tokens) → `calls` (calls and what belongs to them,
pure) → `rewrite` (the tables they mean, edits) → `tables/text_functions` (what DuckDB then calls for texts).
That alone gives all answers. The planner makes them fast: `match_columns` has the index compute the calls as columns of
a scan, wherever they stand; `matched_rows` finds the best rows of an ORDER BY … LIMIT beforehand.
Never here: what a term is, and how rows are scored.
"""
