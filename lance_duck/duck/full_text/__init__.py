"""Full-text search in plain SQL with `match`, `match_phrase` and `score`. DuckDB does not have these functions.

    SELECT *, score(t) FROM t WHERE match(body, 'duck lake') ORDER BY score(t) DESC LIMIT 10

You hold: the user's statement. You get: a statement that calls functions of this package instead. Each function takes a
column of a Lance table and the table's name. Later steps (changes of tables, views, the planner) can therefore treat
the statement as ordinary SQL. Steps: `statement/scope` (the tables of each SELECT, from tokens) → `calls` (calls and
their arguments, pure) → `rewrite` (table lookup, edits) → `tables/text_functions` (the functions that DuckDB calls).

These steps are enough for correct results. The planner adds speed: `match_columns` makes the index compute the calls as
scan columns, and `matched_rows` finds the best rows of an ORDER BY … LIMIT in advance. If a column passes through other
queries (`origins`), its calls are pushed down to the SELECT that reads the table (`carried_calls`), also through views
(`inlined_views`). If DuckDB rejects the result, the calls stay unchanged.
Never here: tokenization of text into terms, and scoring.
"""
