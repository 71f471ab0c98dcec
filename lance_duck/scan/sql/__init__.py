"""SQL filters and expressions as predicates. Simple conditions are parsed without DuckDB.

You hold: SQL text. You get: a predicate tree. Other conditions become Opaque nodes, which DuckDB evaluates.
Never here: statements, and the evaluation of predicates.
"""
