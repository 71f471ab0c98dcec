"""Rules that recognize statement patterns from the text alone, one module per pattern.

You hold: a statement. You get from `find`: proposals with their ranges in the text, such as "this SELECT reads the rows
nearest to a vector" or "these keys restrict a large table". Pure: rules do not read tables or call DuckDB. Each rule
therefore has table-driven tests.
Never here: lookups of Lance tables and indexes.
"""
