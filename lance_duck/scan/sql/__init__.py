"""SQL filters and expressions as predicates: simple conditions are parsed here, without DuckDB.

You hold: text. You get: a predicate tree. Conditions that are not simple become Opaque nodes, which DuckDB evaluates.
Never here: statements, and the evaluation of a predicate.
"""
