"""DuckDB's scan protocol: columns, filters, row counts and types.

You hold: DuckDB's requests to a source: nodes of 2.0 (`nodes`), expressions of 1.5 (`pushed`). You get: predicates, and
Arrow types and arrays that DuckDB supports.
Never here: statements and connections, which are part of `duck`.
"""
