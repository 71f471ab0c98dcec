"""The thresholds by which a scan decides: each with its unit and its reason.

A threshold changes how fast an answer comes, never the answer. Figures are of `benchmarks/costs.py`, unless another
benchmark is named: processor time on two cores, with tables of a million rows or fewer on a local disk.
`docs/decisions/thresholds.md` says which thresholds may exist.
"""

from __future__ import annotations

from typing import Final

# Sizes that several paths share: none is sensitive to a factor of two, either way.

SMALL_BATCH_ROWS: Final = 8192
"""Rows of a batch from which on its overhead does not count (`benchmarks/selective.py`)."""

SMALL_BATCH_BYTES: Final = 1 << 20
"""Bytes of a batch from which on its overhead does not count (`benchmarks/selective.py`)."""

TASK_ROWS: Final = 1024
"""Chosen rows from which on reading them is worth a task of its own: with 256, 384 rows take 1.3 times as long."""

FRAGMENTS_AT_ONCE: Final = 32
"""Fragments of which one task reads some rows: a bound of the memory that they take until they are put in order."""

GROWTH: Final = 4
"""Factor from one size to the next: a scan of a million rows takes 3.7 times as long where morsels do not grow."""

# Rows of a fragment: see `choose_row_access`.

POINT_ROWS: Final = 128
"""Rows of a fragment up to which each is decoded by itself: 24 to 384 of 1,000 take 0.4 of the time of their pages."""

POINT_SHARE: Final = 64
"""Inverse share of the rows of a fragment up to which each is decoded by itself: of 250,000 rows, one in 96 take three
quarters of the time of their pages."""

DENSE_SHARE: Final = 4
"""Inverse share of the rows between the first and the last one wanted from which on all of them are read: one in 1.5
takes 0.4 of the time so, one in 3 takes 0.85."""

WIDE_VALUE: Final = 1024
"""Bytes of a value from which on rows between those wanted are not read: up to 768 bytes they take 0.2 to 0.8 of the
time of the rows alone."""

# Takes: decoded columns first, then the fragments.

TAKES_BEFORE_CACHE: Final = 16
"""Takes of a column after which it is decoded whole and cached: with 4, 6 takes last 1.5 times as long, with 32, 48
takes 1.3 times."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Rows that are decoded in the time of one take: a longer column is cached only after one take for each so many of its
rows."""

# Rows that indexes chose.

RUN_ROWS: Final = 1024
"""Average number of consecutive chosen rows from which on they are read as ranges: runs of 400 take 1.3 to 1.9 times as
long so, of 3,000 about as long."""

FILTER_READ_AHEAD_ROWS: Final = 64
"""Maximum number of chosen rows of an object store whose result columns are read with those of the filter: it saves a
round of requests, where on a local disk wide columns take 3 to 5 times as long so."""

LOOKED_AT_ROWS: Final = 256
"""Rows left by the indexes so far, up to which the rest of the filter is evaluated on these: to look at 200 takes 1.4
times as long as an answer of 1,600."""

LOOKUP_ROWS: Final = 8
"""Rows of an index's answer that cost as much as evaluating the filter on one row: where 1,000 are left, an answer of
12,000 takes 1.1 to 1.6 times as long."""

ANSWER_SHARE: Final = 0.1
"""Share of the covered rows, 0 to 1, beyond which the table is scanned instead of its index: from 0.025 to 0.4, times
differ by a fifth."""

ANSWER_ROWS: Final = 65_536
"""Rows of an answer up to which an index is always searched: from 16,384 to 262,144, times differ by a sixth."""

# Scans: morsels.

MORSEL_BYTES: Final = 12 * 1024 * 1024
"""Bytes of a morsel: with 6 MiB, vectors take three quarters of the processor time, but each batch costs its consumer
(`benchmarks/selective.py`)."""

MOST_MORSEL_BYTES: Final = 1 << 30
"""Maximum size of a morsel, in bytes, whatever `batch_size` says: half of what one Arrow array of strings can hold."""

LEAST_PAGE_BYTES: Final = 4 << 20
"""Decoded bytes that each full page is taken to have when the first rows of a scan are cut: it bounds the memory that
texts take which compress well."""

MORSEL_ROWS: Final = 245_760
"""Maximum number of rows of a morsel, two row groups of DuckDB: with 61,440, narrow columns take 1.4 times as long."""

REMOTE_MORSEL_BYTES: Final = 32 << 20
"""Bytes of a morsel of an object store: with 16 MiB, fragments of 27 MiB take 81 requests, with 32 MiB 10
(`benchmarks/object_store.py`)."""

REMOTE_MORSEL_ROWS: Final = 1 << 20
"""Maximum number of rows of a morsel of an object store: a page of eight-byte values has as many."""

BURST: Final = 4
"""Factor by which a batch may exceed its intended size where a filter suddenly passes more rows: a bound of memory."""

JOINED_FILE_BYTES: Final = 64 * 1024
"""Maximum size of a data file that is read whole, with those of other fragments, in bytes: 200 files of 48 KiB take a
quarter of the time so."""

JOINED_FRAGMENTS: Final = 256
"""Maximum number of fragments that are read whole together, 16 MiB of files: with 64, a scan of 768 takes 1.2 times as
long."""

JOINED_ROWS: Final = 1 << 16
"""Maximum number of rows of fragments that are read together: a bound of memory, as small files may have many rows."""

ALONE_BYTES: Final = 2 << 20
"""Maximum size of a scan that the calling thread reads by itself, in bytes: 1.6 MB take half of the time so."""

# Filters that DuckDB offers: see `filter_pays` of `scan.table_scan`.

PAYS_BELOW: Final = 0.02
"""Share of narrow rows that pass a filter, 0 to 1, up to which the scan applies it instead of DuckDB: with 0.005, a
share of 0.0075 takes 1.4 times as long."""

PAYS_BELOW_WHEN_WIDE: Final = 0.4
"""Share of wide rows that pass a filter, 0 to 1, up to which the scan applies it instead of DuckDB: of vectors of 3 KB,
one in ten takes 0.7 of the time so, three in ten take as long."""

WIDE_ROW: Final = 512
"""Minimum size of a wide row over all columns of the table, in bytes: one row in ten takes twice as long if rows of 384
bytes count as wide."""

SAMPLE_SLICES: Final = 8
"""Slices of `TASK_ROWS` rows, evenly spread, on which a filter's share of passing rows is estimated; 2 to 32 do."""

LARGEST_REPEATED_TEXT: Final = 1024
"""Average bytes of a text beyond which DuckDB gets no dictionary: joining dictionaries of 225 texts of 10 MB took Arrow
30 s."""

# Predicates.

COMPARED_VALUES: Final = 32
"""Integers of an IN of DuckDB up to which a row is compared with each: 12 take half of the time so, 48 as long."""

GATHERED_OPERANDS: Final = 64
"""Operands of an OR from which on its equalities of one column become one IN: 96 take half of the time so."""

LISTS_IN_TEXT: Final = 256
"""Characters of a SQL filter from which on a list of an IN is tokenized as a whole: with 1,024, filters of 384
characters take 1.3 times as long."""

LONG_TEXT: Final = 4096
"""Characters of a SQL filter up to which its parsed form is cached: a bound of memory."""

# Searches.

ALWAYS_COMPARED_ROWS: Final = 1024
"""Rows that pass a filter up to which a search compares each exactly, without its index: 1,536 of 100,000 take 2.1
times the processor time of an index."""

COMPARED_SHARE: Final = 200
"""Inverse share of the rows that pass a filter up to which a search compares each exactly: of 400,000 rows, one in 75
takes 5 times the processor time of an index."""

PRODUCT_QUERIES: Final = 8
"""Queries from which on distances are computed by a product of matrices: 24 take 0.4 of the time so, 3 take 1.2."""

PRODUCT_NEIGHBOURS: Final = 512
"""Neighbours of a query up to which a product of matrices is used: 192 take 0.8 of the time so, 768 take 1.4."""

PRODUCT_ROWS: Final = 2048
"""Rows of one product of matrices: 512 take 1.5 times as long."""

PRODUCT_QUERIES_AT_ONCE: Final = 32
"""Queries of one product of matrices: of 128 queries, 8 at once take twice as long."""

LONE_PRODUCT: Final = 1 << 18
"""Multiplications of a product up to which BLAS starts no threads of its own: with four times as many, a search takes
30 times the processor time."""

BLOCK_BYTES: Final = 8 << 20
"""Bytes of the vectors that a thread compares at a time: from 2 to 32 MiB, times differ by a fifth."""

SPARSE_SHARE: Final = 64
"""Inverse share of the rows of a block from which on a mapped block is read whole: of vectors of 128 bytes, one in 96
takes a fifth of the time if it is read alone."""

# Full-text search of rows that no index covers.

ANALYSED_ROWS: Final = 1 << 16
"""Rows whose texts are analysed together: with a quarter, 1.6 times as long."""

ANALYSED_BYTES: Final = 256 << 20
"""Bytes of analysed texts that are cached for later queries: a bound of memory, about 30 million words."""

# Settings of searches that reach a recall: see `scan.nearest.settings`. They are measured once for a segment, a number
# of neighbours and a share of the rows; `benchmarks/recall_curves.py` and `benchmarks/graph_recall.py` show what they
# find.

SAMPLE_QUERIES: Final = (64, 256)
"""Least and greatest number of sampled queries: the standard error of a measured recall of 0.95 is then about 0.01."""

SAMPLE_NEIGHBOURS: Final = 1024
"""True neighbours of all sampled queries together: with more, the measured recall hardly becomes more precise."""

SAMPLE_NEAREST: Final = 8
SAMPLE_NEAREST_PROBES: Final = 4
"""Rows near to a sampled row of a segment with graphs, and partitions in which they are looked for: the sampled row is
displaced by the distance to the nearest of these."""

SAMPLE_PART: Final = 16
"""Inverse share of the vectors of a large segment that are compared with the sampled queries."""

LEAST_SAMPLE_BYTES: Final = 64 << 20
"""Minimum size of the compared vectors, in bytes, if the segment has as many: a tenth of a second of two cores."""

MOST_SAMPLE_BYTES: Final = 1 << 30
"""Maximum size of the compared vectors, in bytes: some seconds."""

SAMPLE_RUN_ROWS: Final = 32
"""Consecutive rows in each run of sampled vectors: short runs represent the segment, long ones are read faster."""

REMOTE_SAMPLE_BYTES: Final = 8 << 20
"""Bytes of compared vectors of an object store: what is transferred in a tenth of a second."""

REMOTE_SAMPLE_RUNS: Final = 32
"""Runs of consecutive rows of an object store that are compared: each is one request, and all are sent at once."""

SAMPLE_CODES: Final = 1 << 25
"""Codes that are compared with the sampled queries, of which there are 32 at least: some tenths of a second."""

SAMPLE_WALKS: Final = 1 << 17
"""Candidates that walks visit for the sampled queries, of which there are 32 at least: some tenths of a second."""

GRAPH_STEPS: Final = 6
"""Values of `ef` that are measured: each is double the one before, from 64 on."""

MOST_CANDIDATES: Final = 4096
"""Maximum number of candidates with exact distances for a query: where more are needed, all rows are compared."""

FREE_NS: Final = 120_000.0
"""Estimated nanoseconds below which settings are not made cheaper, as the rest of a search takes as long
(`benchmarks/recall_curves.py`)."""

ALWAYS_INDEXED_SHARE: Final = 4
"""Rows of a segment for each neighbour that is wanted, up to which every row of the segment is compared."""

CODE_NS: Final = 2.0
"""Nanoseconds per code in a partition, beside those of its bytes: this cost and those below are processor time of
`benchmarks/nearest_costs.py`, and only their ratios matter."""

CODE_BYTE_NS: Final = 0.4
"""Nanoseconds per byte of a code of product quantization: one lookup in the table of distances."""

TABLE_BYTE_NS: Final = 0.02
"""Nanoseconds per byte of the codebook of product quantization, for the table of distances of each partition."""

ROW_BYTE_NS: Final = 0.05
"""Nanoseconds per byte of a vector in a partition without codes."""

WALK_NS: Final = 700.0
"""Nanoseconds per candidate of a walk over a graph, beside those of its bytes."""

WALK_BYTE_NS: Final = 0.2
"""Nanoseconds per byte of a candidate of a walk: several rows are compared for each candidate."""

CANDIDATE_NS: Final = 550.0
"""Nanoseconds per candidate whose exact distance is computed, beside those of its bytes."""

CANDIDATE_BYTE_NS: Final = 0.2
"""Nanoseconds per byte of a vector whose exact distance is computed, read at random from a file."""

REMOTE_CANDIDATE_NS: Final = 100_000.0
"""Nanoseconds per candidate of an object store: most are a request of their own, which takes the client 80 µs."""

VECTORS_FOR_EACH: Final = 100
"""Vectors that an index returns for each vector of a query, per row that is wanted: 25 find 0.95 of the neighbours, 100
find 0.995 (`benchmarks/multivectors.py`)."""

RANKED_FOR_EACH: Final = 20
"""Rows of several vectors that are compared exactly, per row that is wanted: codes may tell little of them."""

NAMED_SHARE: Final = 256
"""Rows of a segment for each one whose name was looked up, from which on all names are read: of 1 million packed names,
100 take 0.9 ms and all 13 ms."""

# Full-text search with a filter: see `scan.scored.candidates`.

CHECKED_FOR_EACH: Final = 16
"""Best rows on which a new filter is evaluated first, per row that is wanted: where one in 6 or 12 passes, fewer take
up to 1.7 times as long, more up to 1.5 times."""

CHECKED_SHARE: Final = 64
"""Inverse share of the rows of a large table on which a new filter is evaluated at most: with 256, a filter that one in
1,000 passes takes 1.3 times as long."""
