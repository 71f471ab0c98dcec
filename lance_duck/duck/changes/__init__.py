"""Statements that change Lance tables: DuckDB evaluates them, and `verbs` commits the result.

You hold: SQL text, the names of Lance tables, a connection of DuckDB. You get: the rows that DuckDB returns for the
same statement on a native table (a count, or the RETURNING rows), after at most one new version. `runner` finds the
changed table by the statement's tokens and the names on the connection. Modules open with the grammar of their
statements, and name the verbs that run them. Statements that do not change a Lance table are left alone.
Never here: SELECT, which `rules` and `run` handle; and the writing of versions, which `verbs` handles.
"""
