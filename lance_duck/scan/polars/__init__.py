"""A table as a LazyFrame of polars: which columns, which rows, how many.

You hold: one version of a table. You get: a LazyFrame that reads only the columns and rows of a query (`methods`,
`source`), and polars expressions as predicates (`expressions`).
Never here: writing of frames, which are data like any other (`write/inputs`).
"""
