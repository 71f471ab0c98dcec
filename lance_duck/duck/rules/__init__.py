"""What a statement asks for, decided from its text alone: one module for each meaning.

You hold: a statement. You get: a proposal (these rows of this table are the nearest to a vector, these keys choose the
rows of a large table, …), or None. Pure: a rule neither reads tables nor asks DuckDB, so each has a table of tests.
Never here: whether a name means a Lance table, and what an index holds.
"""
