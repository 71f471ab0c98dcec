"""WHERE of a SELECT that calls a search with `prefilter := true`. It chooses rows before the search.

    SELECT id FROM lance_vector_search('t', 'vec', [1, 2], k := 10, prefilter := true) WHERE array_has(tags, 'x')

You hold: the user's statement. You get: a statement whose calls have the conditions as `filter`, or an error for a
condition that cannot choose rows before the search. Steps: `rules/prefilter_condition` (calls and conditions, pure) →
`expression` (what a condition reads) → `pushdown` (edits) → `search_filters` (the filter for the edited text).

WHERE stays in the statement, and also applies to the found rows. A condition of columns, constants and deterministic
functions becomes the text of `filter`. If its meaning depends on the connection (settings, macros, variables), DuckDB
evaluates it on all rows of the table, and the addresses of these rows become the filter.
Never here: searches, and the evaluation of filters.
"""
