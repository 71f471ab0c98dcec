"""DuckDB's scan protocol: which columns, which filters, how many rows, which types.

You hold: what DuckDB asks of a source: nodes of 2.0 (`nodes`), expressions of 1.5 (`pushed`). You get: predicates, and
Arrow types and arrays in the form that DuckDB takes in.
Never here: statements and connections, which are part of `duck`.
"""
