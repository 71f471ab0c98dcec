"""SQL filters and expressions as predicates: simple conditions are parsed here, without DuckDB.

You hold: text. You get: a predicate tree in which what is not simple is an Opaque condition, which DuckDB evaluates.
Never here: statements, and the evaluation of a predicate.
"""
