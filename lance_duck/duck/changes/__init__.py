"""Statements that change Lance tables: DuckDB evaluates them, the verbs of this library commit.

You hold: SQL text, the names of Lance tables, a connection of DuckDB. You get: the rows that DuckDB gives for the same
statement on a table of its own (a count, or what RETURNING asks for), after one new version of the table, or none.
`find` tells from the tokens of a statement alone what it changes; each kind of statement has a module, which opens with
its grammar and names the verb that it ends in. A statement that changes no Lance table is not touched.
Never here: SELECT, which passes `rules` and `run`; and how a version is written, which is known to `verbs`.
"""
