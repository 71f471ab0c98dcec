"""Rules that recognise what a statement asks for, from its text alone: one module per pattern.

You hold: a statement. You get from `find`: proposals (these rows of this table are the nearest to a vector, these keys
choose the rows of a large table, …) with their places in the text, or none. Pure: a rule neither
reads tables nor asks DuckDB, so each has a table of tests.
Never here: whether a name means a Lance table, and what an index holds.
"""
