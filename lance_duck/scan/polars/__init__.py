"""A table as a polars LazyFrame, with column, row and limit pushdown.

You hold: one version of a table. You get: a LazyFrame that reads only the columns and rows of a query (`methods`,
`source`), and polars expressions as predicates (`expressions`).
Never here: writing frames, which `write/inputs` handles like other data.
"""
