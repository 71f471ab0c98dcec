"""DuckDB's scan protocol: columns, filters, row counts and types.

You hold: filters that DuckDB pushes down, as predicate nodes (DuckDB 2.0, `nodes`) or as pyarrow expressions (DuckDB
1.x, `pushed`). You get: predicates, and Arrow types and arrays that DuckDB supports.
Never here: statements and connections, which are part of `duck`.
"""
