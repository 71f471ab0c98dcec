"""Thresholds that decide whether proposals are carried out or left to DuckDB, each with its unit and reason.

A threshold changes speed, never the rows of a statement. `benchmarks/sql.py`, `benchmarks/sql_indexes.py` and
`benchmarks/tpch.py` measure their combined effect; none was measured in isolation.
"""

from __future__ import annotations

from typing import Final

# Rows first

FEW: Final = 8192
"""Rows that an index finds up to which they are read before the statement runs: DuckDB then knows how few they are."""

KEYS_ASKED: Final = 16
"""Values of an IN up to which its index is asked which rows they are, although whole pages of the index, by which their
number is estimated, have more than `FEW`: so many pages are read sooner than DuckDB has begun a scan."""

VALUES_BYTES: Final = 1024
"""Bytes of these rows up to which they are written into the statement as VALUES: DuckDB binds those faster than a
table."""

# Keys first

MOST_KEYS: Final = 10_000
"""Distinct keys of the other tables of a join up to which the table is read only where they are."""

LARGE: Final = 100_000
"""Rows from which on a table is worth a query for keys."""

PER_KEY: Final = 1000
"""Rows of a table for each key from which on it is worth it: each key may be on a page of its own."""

SMALLER: Final = 8
"""Times that all tables of the query for keys together are smaller than the table: they are read twice."""

SELECTIVE: Final = 8
"""One row in so many that the keys may leave of the table: with more, a scan does as well."""

# Nearest rows first

MOST_NEAREST: Final = 10_000
"""Nearest rows of one vector from which on DuckDB sorts all rows itself."""

MOST_OF_ALL: Final = 1_000_000
"""The same of all vectors of a join together."""

MORE: Final = 8
"""Rows that are looked for besides those asked for, at least: rows of equal distance are among them."""

MOST_QUERIES: Final = 100_000
"""Vectors of a table of queries up to which a join with nearest rows is one search."""
