"""Lets indexes answer conditions that DuckDB does not pass to a scan, such as `list_contains` and LIKE.

You hold: proposals of `rules/indexed_condition`, for a query or for the query that finds the rows of a change. You get:
edits after which the statement reads tables without the rows that indexes exclude. The conditions stay in the
statement. A view becomes its query (`views`), so that the table inside is restricted.
Never here: analysis of the statement's text, and index searches, which belong to `scan`.
"""
