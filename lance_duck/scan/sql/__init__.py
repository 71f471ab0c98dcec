"""SQL filters and expressions as people write them, as predicates: simple conditions without asking DuckDB.

You hold: text. You get: a predicate tree in which what is not simple is an Opaque condition, which DuckDB evaluates.
Never here: statements, and the evaluation of a predicate.
"""
