"""Statements that change Lance tables: DuckDB evaluates them, the verbs of this library commit.

You hold: SQL text, the names of Lance tables, a connection of DuckDB. You get: the rows that DuckDB gives for the same
statement on a table of its own (a count, or what RETURNING asks for), after one new version of the table, or none.
`runner` finds what a statement changes by its tokens and the names on the connection; modules open with the grammar of
their statements and name the verbs that these end in. A statement that changes no Lance table is not touched.
Never here: SELECT, which passes `rules` and `run`; and how a version is written, which is known to `verbs`.
"""
