"""The thresholds by which a scan decides: each with its unit, its reason, and the benchmark that found it.

A threshold changes how fast an answer comes, never the answer. "Not measured" says that no benchmark has found the
value: it is a guess of a size. Bounds of memory stand beside what they bound.

How rows of a fragment are read is decided by `rows_way`, in `scan.read.rows_way`.
"""

from __future__ import annotations

from typing import Final

# Rows of a fragment: see `rows_way`.

POINT_ROWS: Final = 32
"""Rows that are decoded one by one, whatever the size of the fragment: a page costs more. Not measured."""

POINT_SHARE: Final = 64
"""One row in so many: fewer rows of a fragment are decoded one by one, too. Not measured."""

DENSE_SHARE: Final = 4
"""One row in so many: of narrow columns, more rows are read with all rows between them. Not measured."""

WIDE_VALUE: Final = 256
"""Bytes of a value from which the rows between those that are wanted are never read. Not measured."""

# Takes: decoded columns first, then the fragments.

CACHED_TAKE_ROWS: Final = 1 << 15
"""Rows of a take up to which decoded columns are used: finding the rows takes longest of it. They pay from 1 row to
1000, see `benchmarks/caches.py`; the limit is not measured."""

TAKES_BEFORE_CACHE: Final = 16
"""Takes of a column before it is decoded for the next ones: who takes once pays nothing. Not measured."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Rows that are decoded in the time in which one take finds its rows: so many takes pay for a column. Not measured."""

FRAGMENTS_OF_A_TAKE: Final = 64
"""Fragments of a take that are read at once: their rows wait in memory to be put in order. Not measured."""

# Rows that indexes chose.

FILTER_READ_AHEAD_ROWS: Final = 64
"""Rows up to which the columns of the result are read with those of the filter: one round of requests. Not measured."""

SELECTION_TASK_ROWS: Final = 1024
"""Rows of one fragment that are a task of their own; fewer are read with those of other fragments. Not measured."""

SELECTION_TASK_FRAGMENTS: Final = 64
"""Fragments at most whose few rows are one task. Not measured."""

COUNTED_TASK_ROWS: Final = 1 << 20
"""Rows of a task of which nothing but their number is asked: they are not read. Not measured."""

RUN_ROWS: Final = 256
"""Rows of a run, on average, from which runs are read as ranges. Not measured."""

# Index lookups.

LOOKED_AT_ROWS: Final = 256
"""Rows that other indexes leave and that are looked at rather than asked of one more index. Not measured."""

LOOKUP_ROWS: Final = 32
"""Rows of an index's answer that cost as much as one row that is looked at. Not measured."""

ANSWER_SHARE: Final = 0.1
"""Part of the rows that a segment covers: of an answer with more, a scan is cheaper. Not measured."""

ANSWER_ROWS: Final = 65_536
"""Rows of an answer that is never too much. Not measured."""

INDEXED_SHARE: Final = 0.5
"""Part of the rows that an index covers of a column that DuckDB is told is indexed. Not measured."""

# Scans: morsels.

FIRST_BYTES: Final = 512 * 1024
"""Bytes of the first morsel, so that the first batch comes soon. Not measured."""

FIRST_ROWS: Final = 8192
"""Rows of the first morsel at most. Not measured."""

MORSEL_GROWTH: Final = 4
"""Times that a morsel is larger than the one before it. Not measured."""

MORSEL_BYTES: Final = 12 * 1024 * 1024
"""Bytes of a morsel: threads have enough to do, and caches hold it. Not measured."""

MORSEL_ROWS: Final = 245_760
"""Rows of a morsel at most: two row groups of DuckDB. Not measured."""

BURST: Final = 4
"""Times that a batch may be larger than meant, where a filter keeps more than it did so far. Not measured."""

# Small batches: see `scan.read.small_batches`.

ENOUGH_ROWS: Final = 8192
"""Rows of a batch for which its overhead does not count; pylance gives as many. `benchmarks/selective.py`."""

ENOUGH_BYTES: Final = 1 << 20
"""Bytes of a batch for which its overhead does not count, and copying it does. `benchmarks/selective.py`."""

BATCH_GROWTH: Final = 4
"""Times more rows than the batch before that a batch waits for. `benchmarks/selective.py`."""

WAITING_PIECES: Final = 16
"""Pieces of work after which rows that wait go out: some tens of milliseconds on a local disk. Not measured."""

# Filters that DuckDB offers: see `scan.read.selectivity`.

PAYS_BELOW: Final = 0.02
"""Part of the rows that a filter keeps up to which it is applied here and not by DuckDB. Not measured."""

PAYS_BELOW_WHEN_WIDE: Final = 0.4
"""The same of wide rows. Not measured."""

WIDE_ROW: Final = 512
"""Bytes of a wide row. Not measured."""

SAMPLE_SLICES: Final = 8
"""Slices of a table in which the rows that a filter keeps are counted. Not measured."""

SAMPLE_SLICE_ROWS: Final = 1024
"""Rows of such a slice. Not measured."""

RARE_KEY_SHARE: Final = 500
"""One row in so many: where one key finds fewer, other keys are taken to do so, too. Not measured."""

# Texts that repeat: see `scan.read.dictionary_hint`.

REPEATED_TEXTS: Final = 64
"""Different texts of a sample up to which a column is given as a dictionary. Not measured."""

REPEATED_TEXT_BYTES: Final = 12
"""Bytes of a text, on average, up to which it is: longer texts cost more to compare than to look up. Not measured."""

TEXT_SAMPLE_ROWS: Final = 1024
"""Rows of the sample. Not measured."""

TEXT_SAMPLE_FRAGMENTS: Final = 32
"""Fragments of a table of which all pages are looked at. Not measured."""

# Predicates.

ASKED_ENTRIES: Final = 4096
"""Entries of a dictionary that are always asked instead of the rows. Not measured."""

COMPARED_VALUES: Final = 16
"""Integers of an IN of DuckDB's up to which each is compared: faster than a lookup. Not measured."""

GATHERED_OPERANDS: Final = 64
"""Operands of an OR from which equalities of one column become one IN. Not measured."""

LISTS_IN_TEXT: Final = 256
"""Characters of a filter from which its lists are looked at as a whole. Not measured."""

LONG_TEXT: Final = 4096
"""Characters of a filter that is not worth a place in a cache: it has long lists, and rarely comes again."""

# Searches.

ALWAYS_COMPARED_ROWS: Final = 1024
"""Rows of a filter that a search compares one by one, without its index. Not measured."""

COMPARED_SHARE: Final = 200
"""One row in so many: fewer rows of a filter are compared one by one, too. Not measured."""

PRODUCT_QUERIES: Final = 8
"""Queries that are worth a product of matrices. Not measured."""

PRODUCT_NEIGHBOURS: Final = 512
"""Neighbours up to which the product leaves few rows to compare. Not measured."""

PRODUCT_ROWS: Final = 2048
"""Rows of one product: its scores stay in the cache of a core. Not measured."""

PRODUCT_QUERIES_AT_ONCE: Final = 32
"""Queries of one product. Not measured."""

LONE_PRODUCT: Final = 1 << 18
"""Multiplications of a product that BLAS does in the calling thread: its threads would be in the way of those that
compare blocks. Not measured."""

BLOCK_BYTES: Final = 8 << 20
"""Bytes of the vectors that one thread compares at a time. Not measured."""

LEAST_BLOCK_BYTES: Final = 1 << 20
"""Bytes of pages that are worth a block of their own. Not measured."""

SPARSE_SHARE: Final = 256
"""One row in so many: of a mapped file a block with more is read whole, as what lies between is not touched. Not
measured."""

SPARSE_SHARE_REMOTE: Final = 2
"""The same of a file that is read by requests. Not measured."""

SPARSE_ROWS: Final = 8192
"""Rows that are compared at a time where they are read one by one. Not measured."""

EXTREMES_ROWS: Final = 8192
"""Rows whose lengths are computed at a time. Not measured."""
