"""Thresholds that decide how a scan runs, each with its unit and reason.

A threshold affects the speed of a scan, never its result. Figures come from `benchmarks/costs.py`, unless another
benchmark is named. Times are CPU times on two cores, for tables of up to a million rows on a local disk.
`docs/decisions/thresholds.md` says which thresholds may exist.
"""

from __future__ import annotations

from typing import Final

# Sizes shared by several paths. A factor of two in either direction hardly matters.

SMALL_BATCH_ROWS: Final = 8192
"""Batch size, in rows, above which the overhead per batch is negligible (`benchmarks/selective.py`)."""

SMALL_BATCH_BYTES: Final = 1 << 20
"""Batch size, in bytes, above which the overhead per batch is negligible (`benchmarks/selective.py`)."""

TASK_ROWS: Final = 1024
"""Minimum number of chosen rows per read task: with 256, reading 384 rows is 1.3 times slower."""

FRAGMENTS_AT_ONCE: Final = 32
"""Maximum number of fragments from which one task reads single rows. This limits the memory held until the rows are
sorted."""

GROWTH: Final = 4
"""Factor by which each morsel or batch of a scan is larger than the previous one, up to its limit. Without growth, a
scan of a million rows is 3.7 times slower."""

# How chosen rows of a fragment are read: see `choose_row_access`.

POINT_ROWS: Final = 128
"""Rows are decoded one by one if at most this many rows of a fragment are chosen: 24 to 384 of 1,000 then take 0.4 of
the time of whole pages."""

POINT_SHARE: Final = 64
"""Rows are decoded one by one if a fragment has at least this many rows per chosen row. With one chosen row in 96 of
250,000, this takes three quarters of the time of whole pages."""

DENSE_SHARE: Final = 4
"""All rows from the first to the last chosen one are read if at least one in this many is chosen: this is 2.5 times
faster if two in three are chosen, and 1.2 times faster if one in three is."""

WIDE_VALUE: Final = 1024
"""Minimum value size, in bytes, for which rows between the chosen ones are skipped: up to 768 bytes, reading them takes
0.2 to 0.8 of the time that skipping them takes."""

# Takes, which read rows from cached, decoded columns or from the fragments.

TAKES_BEFORE_CACHE: Final = 16
"""Number of takes after which a column is decoded whole and cached: with 4, 6 takes are 1.5 times slower; with 32, 48
takes are 1.3 times slower."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Number of rows that can be decoded in the time of one take. A column is cached only after at least one take per this
many rows of it."""

BYTES_DECODED_IN_A_TAKE: Final = 1 << 16
"""Stored bytes of strings that can be decoded in the time of one take. See `ROWS_DECODED_IN_A_TAKE`."""

# Filters that indexes help with.

RUN_ROWS: Final = 1024
"""Minimum average run length, in rows, for which chosen rows are read as ranges: ranges are 1.3 to 1.9 times slower for
runs of 400, and break even at 3,000."""

FILTER_READ_AHEAD_ROWS: Final = 64
"""Maximum number of chosen rows in an object store whose result columns are read together with the filter columns. This
saves a round of requests; on a local disk, wide columns would be 3 to 5 times slower."""

LOOKED_AT_ROWS: Final = 256
"""If at most this many rows remain, the other conditions are evaluated on them without a further index: evaluating 200
rows takes 1.4 times as long as reading an index result of 1,600."""

LOOKUP_ROWS: Final = 8
"""Number of rows in an index result that cost as much as evaluating the filter on one row: with 1,000 rows left,
reading an index result of 12,000 takes 1.1 to 1.6 times as long as evaluating the filter."""

ANSWER_SHARE: Final = 0.1
"""Share of the covered rows, 0 to 1, beyond which the table is scanned instead of its index: from 0.025 to 0.4, times
differ by a fifth."""

ANSWER_ROWS: Final = 65_536
"""Maximum result size, in rows, for which an index is always searched: from 16,384 to 262,144, times differ by a
sixth."""

# Scans: morsels.

MORSEL_BYTES: Final = 12 * 1024 * 1024
"""Size of a morsel, in bytes. With 6 MiB, vectors take three quarters of the CPU time, but each additional batch takes
time in its consumer (`benchmarks/selective.py`)."""

MOST_MORSEL_BYTES: Final = 1 << 30
"""Maximum size of a morsel, in bytes, regardless of `batch_size`: half the capacity of an Arrow string array."""

LEAST_PAGE_BYTES: Final = 4 << 20
"""Assumed decoded size of a full page, in bytes, when the first morsels of a scan are cut. This limits memory if
strings compress well."""

MORSEL_ROWS: Final = 245_760
"""Maximum rows per morsel, two DuckDB row groups: with 61,440, narrow columns are 1.4 times slower."""

REMOTE_MORSEL_BYTES: Final = 32 << 20
"""Size of a morsel from an object store, in bytes. Fragments of 27 MiB take 81 requests with 16 MiB, and 10 requests
with 32 MiB (`benchmarks/object_store.py`)."""

REMOTE_MORSEL_ROWS: Final = 1 << 20
"""Maximum rows per morsel from an object store: one page of eight-byte values."""

BURST: Final = 4
"""Factor by which a batch may exceed its target size if more rows than before pass the filter. This limits memory."""

JOINED_FILE_BYTES: Final = 64 * 1024
"""Maximum size, in bytes, of a data file that is read whole together with other fragments' files: 200 files of 48 KiB
then take a quarter of the time."""

JOINED_FRAGMENTS: Final = 256
"""Maximum number of fragments that are read whole together, at most 16 MiB of files: with 64, a scan of 768 fragments
is 1.2 times slower."""

JOINED_ROWS: Final = 1 << 16
"""Maximum total row count of fragments that are read together. This limits memory, because small files may have many
rows."""

ALONE_BYTES: Final = 2 << 20
"""Maximum size, in bytes, of a scan that the calling thread runs alone: 1.6 MB then take half the time."""

# Filters that DuckDB offers: see `filter_pays` of `scan.table_scan`.

PAYS_BELOW: Final = 0.02
"""Maximum share of narrow rows passing a filter, 0 to 1, for which the scan applies it instead of DuckDB: with 0.005, a
share of 0.0075 is 1.4 times slower."""

PAYS_BELOW_WHEN_WIDE: Final = 0.4
"""Maximum share of wide rows passing a filter, 0 to 1, for which the scan applies it instead of DuckDB: with 3 KB
vectors, one row in ten takes 0.7 of the time, and three in ten break even."""

WIDE_ROW: Final = 512
"""Minimum size of a wide row over all columns of the table, in bytes. If rows of 384 bytes counted as wide, a filter
that one row in ten passes would take twice as long."""

SAMPLE_SLICES: Final = 8
"""Number of slices of `TASK_ROWS` rows, evenly spread over the table, from which a filter's selectivity is estimated.
Values from 2 to 32 work."""

LARGEST_REPEATED_TEXT: Final = 1024
"""Maximum average string size, in bytes, for which DuckDB receives dictionaries: Arrow took 30 s to concatenate
dictionaries of 225 strings of 10 MB."""

# Predicates.

COMPARED_VALUES: Final = 32
"""Maximum number of integers in a DuckDB IN list that are compared one by one: 12 take half the time, 48 break even."""

FLAGS: Final = 1 << 18
"""Integers within a range of this size are looked up in an array of flags, which fits the cache of a core."""

FLAGS_FOR_EACH: Final = 128
"""Maximum ratio of range to count for which more integers are looked up in an array of flags. Hashed integers need a
second lookup."""

GATHERED_OPERANDS: Final = 64
"""Minimum number of OR operands for which equalities on one column are merged into an IN: 96 then take half the
time."""

LISTS_IN_TEXT: Final = 256
"""Minimum filter length, in characters, for which an IN list is tokenized as a whole: with 1,024, filters of 384
characters are 1.3 times slower."""

LONG_TEXT: Final = 4096
"""Maximum length, in characters, of a SQL filter whose parsed form is cached. This limits memory."""

# Searches.

ALWAYS_COMPARED_ROWS: Final = 1024
"""If at most this many rows pass its filter, a search always compares them exactly, without an index: 1,536 of 100,000
take 2.1 times the processor time of an index search."""

COMPARED_SHARE: Final = 200
"""A search compares rows exactly if at most one row in this many passes the filter: if one in 75 of 400,000 passes,
this takes 5 times the processor time of an index search."""

PRODUCT_QUERIES: Final = 8
"""Minimum number of queries for which distances are computed by matrix multiplication: 24 take 0.4 of the time, and 3
take 1.2 times as long."""

PRODUCT_NEIGHBOURS: Final = 512
"""Maximum number of neighbours per query for which matrix multiplication is used: 192 take 0.8 of the time, and 768
take 1.4 times as long."""

PRODUCT_ROWS: Final = 2048
"""Number of rows per matrix product: 512 are 1.5 times slower."""

PRODUCT_QUERIES_AT_ONCE: Final = 32
"""Number of queries per matrix product: 128 queries are twice as slow in products of 8."""

LONE_PRODUCT: Final = 1 << 18
"""Maximum number of multiplications for which BLAS starts no threads: with four times this number, a search takes 30
times the processor time."""

BLOCK_BYTES: Final = 8 << 20
"""Size, in bytes, of the block of vectors that a thread compares at once: from 2 to 32 MiB, times differ by a fifth."""

SPARSE_SHARE: Final = 64
"""A memory-mapped block is read whole if at least one row in this many is needed. If one in 96 vectors of 128 bytes is
needed, reading only these takes a fifth of the time."""

# Full-text search in rows that no index covers.

ANALYSED_ROWS: Final = 1 << 16
"""Number of rows whose texts are analysed together. With a quarter of them, the analysis is 1.6 times slower."""

ANALYSED_BYTES: Final = 256 << 20
"""Maximum size, in bytes, of the cache of analysed texts: about 30 million words. This limits memory."""

FEW_ROWS: Final = 1 << 12
"""Maximum number of rows without an index for the fast way of searches for words. Their postings are searched without
skipping."""

FEW_ROWS_BYTES: Final = 16 << 20
"""Maximum size of these rows' analysed texts, in bytes. This limits memory."""

# Search settings that reach a requested recall: see `scan.nearest.settings`. They are determined once for each segment,
# number of neighbours and share of rows. `benchmarks/recall_curves.py` and `benchmarks/graph_recall.py` report the
# recall that they reach.

SAMPLE_QUERIES: Final = (64, 256)
"""Minimum and maximum number of sampled queries. The standard error of a measured recall of 0.95 is then about 0.01."""

SAMPLE_NEIGHBOURS: Final = 1024
"""Number of true neighbours, summed over the sampled queries. More would hardly make the measured recall more
precise."""

SAMPLE_NEAREST: Final = 8
SAMPLE_NEAREST_PROBES: Final = 4
"""Number of rows near a sampled row that are searched in a segment with graphs, and number of partitions that are
searched for them. The sampled row is displaced by its distance to the nearest of these rows."""

SAMPLE_PART: Final = 16
"""Inverse share of the vectors of a large segment that are compared with the sampled queries."""

LEAST_SAMPLE_BYTES: Final = 64 << 20
"""Minimum size of the compared vectors, in bytes, unless the segment is smaller. Two cores compare them in a tenth of a
second."""

MOST_SAMPLE_BYTES: Final = 1 << 30
"""Maximum size of the compared vectors, in bytes. Comparing this many takes some seconds."""

SAMPLE_RUN_ROWS: Final = 32
"""Length of each run of sampled vectors, in rows. Short runs represent the segment better, and long runs are read
faster."""

REMOTE_SAMPLE_BYTES: Final = 8 << 20
"""Size, in bytes, of the sampled vectors from an object store. Their transfer takes a tenth of a second."""

REMOTE_SAMPLE_RUNS: Final = 32
"""Number of runs sampled from an object store. Each is one request, and all are sent concurrently."""

SAMPLE_CODES: Final = 1 << 25
"""Number of codes to compare with the sampled queries. At least 32 of these queries are used. This takes some tenths of
a second."""

SAMPLE_WALKS: Final = 1 << 17
"""Number of candidates that graph walks visit for the sampled queries. At least 32 of these queries are used. This
takes some tenths of a second."""

GRAPH_STEPS: Final = 6
"""Number of `ef` values that are measured: 64, then each twice the previous one."""

MOST_CANDIDATES: Final = 4096
"""Maximum number of candidates that are reranked per query. If more are needed, all rows are compared."""

FREE_NS: Final = 30_000.0
"""Estimated cost, in nanoseconds, below which cheaper settings are not tried, because the rest of a search takes as
long (`benchmarks/recall_curves.py`)."""

ALWAYS_INDEXED_SHARE: Final = 4
"""Every row of a segment is compared if the segment has at most this many rows per requested neighbour."""

CODE_NS: Final = 2.0
"""Nanoseconds per code in a partition, excluding the cost of its bytes. This cost and the following ones are processor
times from `benchmarks/nearest_costs.py`. Only their ratios matter."""

CODE_BYTE_NS: Final = 0.4
"""Nanoseconds per byte of a code of product quantization: one lookup in the table of distances."""

TABLE_BYTE_NS: Final = 0.02
"""Nanoseconds per codebook byte of product quantization, to build each partition's distance table."""

FAST_CODE_BYTE_NS: Final = 0.02
"""Nanoseconds per byte of a 4-bit code that is looked up in registers."""

FAST_TABLE_BYTE_NS: Final = 0.4
"""Nanoseconds per codebook byte of 4-bit codes, to build and to round each partition's distance table."""

COARSE_REFINE_FACTOR: Final = 4
"""Number of candidates to rerank by default if codes are compared coarsely, as a multiple of k."""

ROW_BYTE_NS: Final = 0.05
"""Nanoseconds per byte of a vector in a partition without codes."""

WALK_NS: Final = 700.0
"""Nanoseconds per candidate of a graph walk, excluding the cost of its bytes."""

WALK_BYTE_NS: Final = 0.2
"""Nanoseconds per vector byte of a candidate of a walk: several vectors are compared for each candidate."""

CANDIDATE_NS: Final = 550.0
"""Nanoseconds per candidate whose exact distance is computed, excluding its bytes."""

CANDIDATE_BYTE_NS: Final = 0.2
"""Nanoseconds per byte of a vector whose exact distance is computed, read at random from a file."""

REMOTE_CANDIDATE_NS: Final = 100_000.0
"""Nanoseconds per candidate that is read from an object store: most need a separate request, which takes the client
80 µs."""

VECTORS_FOR_EACH: Final = 100
"""Number of vectors fetched from the index per query vector and requested row: with 25, a search finds 0.95 of the
neighbours, with 100, 0.995 (`benchmarks/multivectors.py`)."""

RANKED_FOR_EACH: Final = 20
"""Number of multivector rows that are compared exactly per requested row, because their codes may be inaccurate."""

NAMED_SHARE: Final = 256
"""All row ids of a segment are read once one row in this many was looked up. For 1 million packed ids, 100 lookups
take 0.9 ms, and reading all ids takes 13 ms."""

# Full-text search with a filter: see `scan.scored.candidates`.

CHECKED_FOR_EACH: Final = 16
"""Number of best rows, per requested row, on which a new filter is evaluated first. If one in 6 or 12 passes, a smaller
number is up to 1.7 times slower, a larger one up to 1.5 times."""

CHECKED_SHARE: Final = 64
"""In a large table, a new filter is first evaluated on at most one row in this many: with 256, a search is 1.3 times
slower if one row in 1,000 passes."""
