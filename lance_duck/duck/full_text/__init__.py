"""Full text in plain SQL: `match`, `match_phrase` and `score` where DuckDB has no such functions.

    SELECT *, score(t) FROM t WHERE match(body, 'duck lake') ORDER BY score(t) DESC LIMIT 10

You hold: a statement as given. You get: a statement in which those calls are replaced by functions of this package;
each has a column of a Lance table and names the table, so that later steps (changes of tables, views, the planner) see
ordinary SQL. The way: `statement/scope` (which tables each SELECT reads, by tokens) → `calls` (calls and what belongs
to them, pure) → `rewrite` (the tables they mean, edits) → `tables/text_functions` (what DuckDB then calls for texts).
That alone gives correct answers. The planner makes them fast: `match_columns` has the index compute the calls as
columns of a scan, wherever they stand; `matched_rows` finds the best rows of an ORDER BY … LIMIT beforehand. Calls of
columns that come through other queries (`origins`) are carried to the SELECT that reads the table before
(`carried_calls`), through the text of a view, too (`inlined_views`); where DuckDB refuses that, they stay.
Never here: what a term is, and how rows are scored.
"""
