"""Thresholds that determine whether proposals are executed, each with a unit and a reason.

A threshold changes speed, never the rows of a statement. `benchmarks/sql.py`, `benchmarks/sql_indexes.py` and
`benchmarks/tpch.py` measure their combined effect. Individual thresholds were not measured.
"""

from __future__ import annotations

from typing import Final

from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

# Rows first

FEW: Final = 8192
"""Index results of up to this many rows are read before the statement runs. DuckDB then plans with the exact row
count."""

KEYS_ASKED: Final = 16
"""An IN with up to this many values is always looked up in the index, even if the estimate exceeds `FEW`. The estimate
counts whole index pages. Reading these pages takes less time than DuckDB needs to start a scan."""

VALUES_BYTES: Final = 1024
"""Maximum size of rows that are passed as parameter values, in bytes. DuckDB binds parameters faster than a table."""

# Keys first

MOST_KEYS: Final = 10_000
"""Maximum number of distinct join keys to filter a table by."""

LARGE: Final = 100_000
"""Minimum row count of a table that is worth a key query."""

PER_KEY: Final = 1000
"""Minimum number of table rows per key, because each key may be on a different page."""

SMALLER: Final = 8
"""The tables of a key query must be smaller than the restricted table by this factor, because they are read twice."""

SELECTIVE: Final = 8
"""The keys, or the conditions of a statement, may select at most one in this many table rows. Otherwise, a scan is as
fast: see `benchmarks/tpch.py`."""

# Keys first, without an index: `docs/decisions/join-keys.md` has figures.

SCANNED: Final = 500_000
"""Minimum row count of a table that is worth a key query without an index."""

MOST_NUMBERS: Final = 1 << 20
"""Maximum number of integer keys. This limits memory."""

SELECTIVE_WHEN_SCANNED: Final = 16 if SPEAKS_SOURCE else 4
"""Without an index, the keys may select at most one in this many table rows. DuckDB 1.x does more work per row."""

SMALLER_WHEN_SCANNED: Final = 3
"""The tables of a key query must be smaller than the scanned table by this factor."""

TINY: Final = 64
"""Tables that are smaller by this factor are read for keys although their share is unknown."""

KEY_QUERY_NS: Final = 6_000_000
"""Time of a key query that reads few rows, in nanoseconds of processor time."""

KEY_ROW_NS: Final = 11
"""Time that a key query takes per row of its tables, in nanoseconds."""

SKIPPED_BYTE_NS: Final = 0.25 if SPEAKS_SOURCE else 0.5
"""Time that a scan saves per table row and byte of the columns after the key, in nanoseconds, if few rows pass. DuckDB
1.x takes longer to receive and to join a row."""

# Nearest rows first

MOST_NEAREST: Final = 10_000
"""Maximum number of nearest rows per vector. Above it, DuckDB sorts all rows itself."""

MOST_OF_ALL: Final = 1_000_000
"""Maximum number of nearest rows of a join, summed over its vectors."""

MORE: Final = 8
"""Minimum number of rows to find beyond the limit, to include ties with the last row."""

MOST_QUERIES: Final = 100_000
"""Maximum row count of the query table in a join that runs as one search."""
