"""Statements that change Lance tables: DuckDB evaluates them, and `verbs` commits the result.

You hold: SQL text, the names of Lance tables, a DuckDB connection. You get: the rows that DuckDB returns for the same
statement on a native table (a count, or the RETURNING rows), after at most one new version. `runner` finds the changed
table from the statement's tokens and the names on the connection. Each module docstring starts with the grammar of the
statements, and lists the verbs that run them. DuckDB runs all other statements.
Never here: SELECT statements (see `rules` and `run`), and writing versions (see `verbs`).
"""
