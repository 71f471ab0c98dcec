"""Lets indexes answer conditions that DuckDB does not pass to a scan, such as `list_contains` and LIKE.

DuckDB passes other conditions to a scan one by one, and the scan declines those that many rows satisfy. If few rows
satisfy all of them together, the scan applies them, too. DuckDB still plans joins with its own estimates.

You hold: proposals of `rules/indexed_condition`, for a query or for the query that finds the rows of a change. You get:
edits after which the statement reads tables without the rows that the conditions exclude. They stay in the
statement. A view becomes its query (`views`), so that the table inside is restricted.
Never here: analysis of the statement's text, and index searches, which belong to `scan`.
"""
