"""A table as a polars LazyFrame. Columns, filters and limits are pushed down to the scan.

You hold: one version of a table. You get: a LazyFrame that reads only the columns and rows of a query (`methods`,
`source`), and polars expressions as predicates (`expressions`).
Never here: writing polars frames (see `write/inputs`).
"""
