"""The thresholds by which a scan decides: each with its unit, its reason, and the benchmark that found it.

A threshold changes how fast an answer comes, never the answer. `benchmarks/costs.py` measures the processor time of
work on either side of a threshold, with the threshold as it is and with a quarter to four times of it; figures here are
of its runs on two cores, with tables of a million rows or fewer on a local disk. "Within noise" says that the five
values differed by less than a tenth, or without order. "Not measured" says that no benchmark has found the value: it is
a guess of a size. Bounds of memory say so.

How rows of a fragment are read is decided in `scan.read.row_access`.
"""

from __future__ import annotations

from typing import Final

# Rows of a fragment: see `choose_row_access`.

POINT_ROWS: Final = 128
"""Rows of a fragment up to which each is decoded by itself, whatever the size of the fragment: decoding the pages that
hold them costs more. `benchmarks/costs.py`: 24 to 384 of 1,000 rows take 0.35 to 0.4 of the time of their pages; more
may be as good where values are numbers or texts."""

POINT_SHARE: Final = 64
"""Inverse share of the rows of a fragment up to which each row is decoded by itself: one row in 64. Beyond 8,192 rows
in a fragment, this bound is the larger one. `benchmarks/costs.py`: of 250,000 rows, one in 192 take half the time of
their pages, one in 96 three quarters, one in 48 still a little less."""

DENSE_SHARE: Final = 4
"""Inverse share of the rows between the first and the last one that is wanted: where at least one row in 4 is wanted
and columns are narrow, all rows of that range are read, and those that are not wanted are left out.
`benchmarks/costs.py`: so one in 1.5 takes 0.4 of the time, one in 3 takes 0.85, one in 6 and fewer as long."""

WIDE_VALUE: Final = 1024
"""Bytes of a value from which on only the rows that are wanted are read, never the range around them.
`benchmarks/costs.py`: with the rows between, values of 384 bytes of one row in 2 or 3 take 0.2 to 0.4 of the time, of
768 bytes 0.4 to 0.8."""

# Takes: decoded columns first, then the fragments.

CACHED_TAKE_ROWS: Final = 1 << 17
"""Rows of a take up to which it is answered from decoded columns that are held in memory. `benchmarks/costs.py`: with
them, takes of 12,000 to 200,000 of 200,000 rows take a quarter to a half of the time; see `benchmarks/caches.py` for 1
to 1000 rows."""

TAKES_BEFORE_CACHE: Final = 16
"""Takes of a column after which it is decoded whole and held in memory for the next ones: a program that takes once
pays nothing. `benchmarks/costs.py`: of a column of 200,000 rows, 6 takes last 1.5 times as long with 4, and 48 takes
1.3 times as long with 32."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Rows that are decoded in the time of one take: a column is decoded whole only after one take for each so many of its
rows. `benchmarks/costs.py`: of a million rows, within a third from 8,192 to 131,072, either way."""

FRAGMENTS_OF_A_TAKE: Final = 64
"""Fragments that a take reads at a time: their rows are held in memory until they are put in order.
`benchmarks/costs.py`: within noise from 16 to 256."""

# Rows that indexes chose.

FILTER_READ_AHEAD_ROWS: Final = 64
"""Maximum number of rows that indexes chose for reading filter and result columns in one round of requests.
`benchmarks/costs.py`: within noise from 16 to 256 on a local disk."""

SELECTION_TASK_ROWS: Final = 1024
"""Rows chosen in one fragment from which on they are a task of their own; fewer share a task with rows of other
fragments. `benchmarks/costs.py`: with 256, 384 rows take 1.3 times as long; from 512 to 4,096 within noise."""

SELECTION_TASK_FRAGMENTS: Final = 64
"""Fragments at most that share a task because few rows of each are chosen. `benchmarks/costs.py`: within noise from 16
to 256."""

COUNTED_TASK_ROWS: Final = 1 << 20
"""Rows of a task where only their number is needed, so that none of them is read. `benchmarks/costs.py`: within noise,
for 700,000 rows of a million."""

RUN_ROWS: Final = 1024
"""Average number of consecutive rows from which on chosen rows are read as ranges instead of as single rows.
`benchmarks/costs.py`: as ranges, runs of 100 rows take 6 times as long as the rows themselves, of 400 rows 1.3 to 1.9
times, of 3,000 about as long."""

# Index lookups.

LOOKED_AT_ROWS: Final = 256
"""Rows left by the indexes so far, up to which the rest of the filter is evaluated on these rows; with more, one more
index is searched. `benchmarks/costs.py`: to look at 200 rows takes 1.4 times as long as an answer of 1,600 rows, and to
ask about 400 rows 0.85 of the time to look at them."""

LOOKUP_ROWS: Final = 8
"""Rows of an index's answer that cost as much as to evaluate the filter on one row: an index whose answer is larger
than so many times the rows left is not searched. `benchmarks/costs.py`: where 1,000 rows are left, to ask for 24 times
as many takes 2.4 to 3.6 times as long as to look at them, for 12 times as many 1.1 to 1.6 times, for 6 times as many
about as long."""

ANSWER_SHARE: Final = 0.1
"""Share of the rows that an index covers, 0 to 1: where more than this share is expected to match, the table is scanned
instead. `benchmarks/costs.py`: of a million rows in no order, within a fifth from 0.025 to 0.4."""

ANSWER_ROWS: Final = 65_536
"""Rows of an answer up to which an index is always searched, whatever their share. `benchmarks/costs.py`: of 200,000
rows, within a sixth from 16,384 to 262,144."""

INDEXED_SHARE: Final = 0.5
"""Share of the rows of the table, 0 to 1, that an index must cover for DuckDB to be told that the column is indexed.
`benchmarks/costs.py`: within noise where an index covers 0.1, 0.35 and 0.75 of the rows."""

# Scans: morsels.

FIRST_BYTES: Final = 512 * 1024
"""Bytes of the first morsel: it is small, so that the first batch comes soon. `benchmarks/costs.py`: within noise from
128 KiB to 2 MiB, for the first batch as for a whole scan."""

FIRST_ROWS: Final = 8192
"""Rows of the first morsel at most. `benchmarks/costs.py`: within noise from 2,048 to 32,768."""

MORSEL_GROWTH: Final = 4
"""Factor by which each morsel is larger than the one before it. `benchmarks/costs.py`: a scan of a million rows takes
3.7 times as long where morsels do not grow; within noise from 2 to 16."""

MORSEL_BYTES: Final = 12 * 1024 * 1024
"""Bytes of a morsel: enough work for a thread, few enough for the caches of a core. `benchmarks/costs.py`: with 3 MiB,
vectors take half of the processor time, with 6 MiB three quarters; but each batch costs its consumer, see
`benchmarks/selective.py`."""

MOST_MORSEL_BYTES: Final = 1 << 30
"""Bytes of a morsel at most, whatever `batch_size` says: half of what one Arrow array of strings can hold."""

LEAST_PAGE_BYTES: Final = 4 << 20
"""Decoded bytes that each full page of a column is taken to have, when the first rows of a scan are cut: writers end
pages at 8 MiB of values, which may be far smaller in the file. 225 texts of 10 MB that compress well: the first rows
that were read were all of them. Not measured otherwise."""

MORSEL_ROWS: Final = 245_760
"""Rows of a morsel at most: two row groups of DuckDB. `benchmarks/costs.py`: with 61,440, narrow columns take 1.4 times
as long; more is within noise."""

REMOTE_MORSEL_BYTES: Final = 32 << 20
"""Bytes of a morsel that is read from an object store: a page that a morsel cuts is read by more requests, and large
morsels cut few. `benchmarks/object_store.py`: with 16 MiB, all columns of fragments of 27 MiB take 81 requests, with 32
MiB 10."""

REMOTE_MORSEL_ROWS: Final = 1 << 20
"""Rows of a morsel at most that is read from an object store: a page of eight-byte values has as many, and is read by
one request. Other values were not measured."""

LARGEST_BATCH: Final = MORSEL_ROWS
"""Rows of a batch at most where the caller names no batch size: larger morsels are yielded in slices."""

BURST: Final = 4
"""Factor by which a batch may be larger than intended, where a filter suddenly passes more rows than before. A
bound of memory."""

JOINED_FILE_BYTES: Final = 64 * 1024
"""Maximum size of a fragment's data files for reading them whole, with those of other fragments, in bytes.
`benchmarks/costs.py`: read whole, 200 files of 24 KiB take 0.4 of the time, of 48 KiB a quarter. Larger ones were not
measured."""

JOINED_FRAGMENTS: Final = 256
"""Fragments at most that are read together, 16 MiB of files; a scan begins with one fragment, for the first batch to
come soon. `benchmarks/costs.py`: within noise from 64 to 1,024, for 96 to 768 fragments."""

JOINED_ROWS: Final = 1 << 16
"""Rows at most of fragments that are read together: a small file may have millions of rows, of one value or of few
bits, which become one batch. A bound of memory."""

ALONE_BYTES: Final = 2 << 20
ALONE_FRAGMENTS: Final = 64
"""Maximum size of a scan that the calling thread reads by itself, in bytes, and its maximum number of fragments.
Starting a worker and handing it the interpreter takes 0.1 ms, as long as decoding 100 KiB. `benchmarks/merges.py`."""

# Small batches: see `scan.read.small_batches`.

ENOUGH_ROWS: Final = 8192
"""Rows of a batch from which on its overhead does not count; pylance yields as many. `benchmarks/selective.py`."""

ENOUGH_BYTES: Final = 1 << 20
"""Bytes of a batch from which on its overhead does not count, and copying it into a larger batch does.
`benchmarks/selective.py`."""

BATCH_GROWTH: Final = 4
"""Factor by which the rows gathered for a batch grow from one batch to the next, up to `ENOUGH_ROWS`.
`benchmarks/selective.py`."""

WAITING_PIECES: Final = 16
"""Pieces of work after which gathered rows are yielded, however few: some tens of milliseconds on a local disk.
`benchmarks/costs.py`: within noise, for the whole of a scan."""

# Filters that DuckDB offers: see `scan.read.selectivity`.

PAYS_BELOW: Final = 0.02
"""Share of the rows that pass a filter, 0 to 1, up to which the scan applies it instead of DuckDB, where rows are
narrow. `benchmarks/costs.py`: of narrow columns, within a tenth from 0.01 to 0.08; with 0.005, 0.75 % of the rows take
1.4 times as long."""

PAYS_BELOW_WHEN_WIDE: Final = 0.4
"""Share of the rows that pass a filter, 0 to 1, up to which the scan applies it instead of DuckDB, where rows are wide.
`benchmarks/costs.py`: of vectors of 768 bytes on a local disk, 30 or 60 % of the rows take half of the time if DuckDB
filters, 15 % take 0.8 of it. Rows that are far away are not measured."""

WIDE_ROW: Final = 512
"""Minimum size of a wide row over all columns of the table, in bytes. `benchmarks/costs.py`: reading one row in ten
takes twice as long if rows of 384 bytes count as wide; from 768 bytes on there is no trend."""

SAMPLE_SLICES: Final = 8
"""Slices of a table, evenly spread, on which a filter is evaluated to estimate the share of rows that pass.
`benchmarks/costs.py`: within noise from 2 to 32."""

SAMPLE_SLICE_ROWS: Final = 1024
"""Rows of each of these slices. `benchmarks/costs.py`: within noise from 256 to 4,096."""

RARE_KEY_SHARE: Final = 500
"""Inverse share of the rows of the table: where an index expects at most one row in 500 for one key of a column, later
keys of this column are taken to be as rare, and no estimate is made for them. `benchmarks/costs.py`: within noise."""

# Texts that repeat: see `scan.read.dictionary_hint`.

REPEATED_TEXTS: Final = 64
"""Distinct texts in a sample up to which a column is given to DuckDB as a dictionary. `benchmarks/costs.py`: within
noise from 16 to 256, grouped by DuckDB from files without dictionaries."""

REPEATED_TEXT_BYTES: Final = 12
"""Average bytes of a text up to which its column may be given as a dictionary: longer texts cost more to compare than
to look up. `benchmarks/costs.py`: within noise from 3 to 48, grouped by DuckDB."""

LARGEST_REPEATED_TEXT: Final = 1024
"""Bytes of a text, as its pages tell, beyond which no dictionary is made: joining dictionaries of 225 texts of 10 MB
took Arrow 30 s, and reading a sample of them gigabytes."""

TEXT_SAMPLE_ROWS: Final = 1024
"""Rows of the sample, from the middle of a fragment. `benchmarks/costs.py`: within noise, for the first statement."""

TEXT_SAMPLE_FRAGMENTS: Final = 32
"""Fragments of a table up to which a column may be given as a dictionary: the pages of all of them are inspected.
`benchmarks/costs.py`: a first statement over 48 fragments takes 1.2 times as long if it may, over 24 fragments 1.1
times."""

# Predicates.

ASKED_ENTRIES: Final = 4096
"""Entries of a dictionary up to which a predicate is evaluated on the entries instead of the rows, even where rows are
few. `benchmarks/costs.py`: within noise, of 10,000 rows."""

COMPARED_VALUES: Final = 32
"""Integers of an IN of DuckDB up to which a row is compared with each in turn, which is faster than a lookup.
`benchmarks/costs.py`: 12 integers of a million rows take half of the time, 24 take three quarters, 48 as long."""

GATHERED_OPERANDS: Final = 64
"""Operands of an OR from which on its equalities of one column are turned into one IN. `benchmarks/costs.py`: as one
IN, 96 take half of the time, 48 about three quarters; 24 and fewer differ without order."""

LISTS_IN_TEXT: Final = 256
"""Characters of a SQL filter from which on a list of an IN is tokenized as a whole. `benchmarks/costs.py`: with 1,024,
filters of 384 characters take 1.3 times as long; with 64, shorter filters take 1.15 times as long."""

LONG_TEXT: Final = 4096
"""Characters of a SQL filter up to which its parsed form is cached: a longer one has long lists, and is rarely used
twice."""

# Searches.

ALWAYS_COMPARED_ROWS: Final = 1024
"""Rows that pass a filter up to which a search compares each with the query, exactly and without its index, whatever
the size of the table. `benchmarks/costs.py`: to compare 768 to 1,536 of 100,000 rows takes 1.6 to 2.1 times the
processor time of an index that rounds, and 3,072, of which blocks are read whole, 9 times."""

COMPARED_SHARE: Final = 200
"""Inverse share of the rows of the table that pass a filter: up to one row in 200, a search compares each with the
query, too. `benchmarks/costs.py`: of 400,000 rows, to compare one in 75 takes 5 times the processor time of an index
that rounds, one in 300 takes 1.7 to 1.9 times."""

PRODUCT_QUERIES: Final = 8
"""Queries from which on distances are computed by a product of matrices. `benchmarks/costs.py`: of 100,000 vectors of
64 numbers, a product takes 0.4 of the time for 24 queries, 0.6 for 12, 0.85 for 6, and 1.2 times as long for 3."""

PRODUCT_NEIGHBOURS: Final = 512
"""Neighbours of a query up to which a product of matrices is used: it must leave few rows to compare exactly.
`benchmarks/costs.py`: for 16 queries, it takes 0.8 of the time at 192 neighbours, as long at 384, 1.4 times as long at
768, and twice at 1,536."""

PRODUCT_ROWS: Final = 2048
"""Rows of one product of matrices: its scores fit in the cache of a core. `benchmarks/costs.py`: 512 take 1.5 times as
long, 1,024 take 1.2 times, up to 8,192 within noise."""

PRODUCT_QUERIES_AT_ONCE: Final = 32
"""Queries of one product of matrices. `benchmarks/costs.py`: of 128 queries, 8 at once take twice as long, 16 take 1.25
times, 128 take 0.8 of the time."""

LONE_PRODUCT: Final = 1 << 18
"""Multiplications of a product up to which BLAS computes it in the calling thread: with more it starts threads of its
own, which would compete with those that compare blocks. `benchmarks/costs.py`: with four times as many, 30 times the
processor time; fewer are within noise."""

BLOCK_BYTES: Final = 8 << 20
"""Bytes of the vectors that a thread compares at a time. `benchmarks/costs.py`: within a fifth from 2 to 32 MiB."""

REMOTE_BLOCKS: Final = 16
"""Blocks that are requested from an object store at a time, at most 256 MiB. `benchmarks/object_store.py`: where each
core asks for one at a time, a search waits for one fragment after the other."""

LEAST_BLOCK_BYTES: Final = 1 << 20
"""Bytes of pages from which on they are a block of their own; smaller pages share a block. `benchmarks/costs.py`:
within a tenth with less; with more, up to 1.3 times as long."""

SPARSE_SHARE: Final = 64
"""Inverse share of the rows of a block that are compared: where it is more than one row in 64, a block of a mapped file
is read whole; with fewer, the rows between are never touched. `benchmarks/costs.py`: of vectors of 128 bytes, one in 96
takes a fifth of the time if it is read alone, one in 48 takes 1.3 times as long."""

SPARSE_SHARE_REMOTE: Final = 2
"""Inverse share of the rows of a block that are compared, above which a block of an object store is read whole. Not
measured."""

RANKED_PAIRS: Final = 4096
"""Pairs of a query and a row up to which one thread computes their exact distances; more are divided among threads.
`benchmarks/costs.py`: within noise for 10,000 and 40,000 pairs."""

SPARSE_ROWS: Final = 8192
"""Number of rows in a comparison of rows that are read one by one. `benchmarks/costs.py`: 2,048 and 4,096 take 1.4
times as long; more are within noise."""

EXTREMES_ROWS: Final = 8192
"""Rows of a batch in the search for the greatest and least lengths of vectors. `benchmarks/costs.py`: within noise with
less; with more, 1.15 times as long."""

# Full-text search of rows that no index covers.

ANALYSED_ROWS: Final = 1 << 16
"""Rows whose texts are analysed together, of one fragment or of several small ones. `benchmarks/costs.py`: with a
quarter, 1.6 times as long; within noise with more."""

ANALYSED_BYTES: Final = 256 << 20
"""Bytes of analysed texts that are kept in memory for later queries of the same table. A bound of memory: about 30
million words."""

# Settings of searches that reach a recall: see `scan.nearest.settings`. They are measured once for a segment, a number
# of neighbours and a share of the rows.

SAMPLE_QUERIES: Final = (64, 256)
"""Least and greatest number of sampled queries: the standard error of a measured recall of 0.95 is then about 0.01."""

SAMPLE_NEIGHBOURS: Final = 1024
"""True neighbours of all sampled queries together: with more, the measured recall hardly becomes more precise."""

SAMPLE_NEAREST: Final = 8
SAMPLE_NEAREST_PROBES: Final = 4
"""Rows near to a sampled row of a segment with graphs, and partitions in which they are looked for: the sampled row is
displaced by the distance to the nearest of these, by their vectors and not their codes. `benchmarks/graph_recall.py`:
what settings measured so find, beside those measured with rows as they are."""

SAMPLE_PART: Final = 16
"""Inverse share of the vectors of a large segment that are compared with the sampled queries: one in 16, so that
measuring reads a fraction of what one search without an index reads."""

LEAST_SAMPLE_BYTES: Final = 64 << 20
"""Bytes of vectors that are compared with the sampled queries, at least, if the segment has as many: a tenth of a
second of two cores."""

MOST_SAMPLE_BYTES: Final = 1 << 30
"""Bytes of vectors that are compared with the sampled queries at most, however large the segment: some seconds. The
fewer are compared, the more distant are the neighbours that stand for the true ones, and the more costly are the
settings chosen by them."""

SAMPLE_RUN_ROWS: Final = 32
"""Consecutive rows in each run of sampled vectors: short runs represent the segment better, long ones are read
faster."""

REMOTE_SAMPLE_BYTES: Final = 8 << 20
"""Bytes of vectors of an object store that are compared with the sampled queries: what is transferred in a tenth of a
second."""

REMOTE_SAMPLE_RUNS: Final = 32
"""Runs of consecutive rows of an object store that are compared, and runs that serve as queries: each is one request,
and all are sent at once."""

SAMPLE_CODES: Final = 1 << 25
"""Codes that are compared with the sampled queries: the number of queries is lowered to keep within it, but not below
32. Some tenths of a second."""

SAMPLE_WALKS: Final = 1 << 17
"""Candidates that walks over graphs visit for the sampled queries: the number of queries is lowered to keep within it,
but not below 32. Some tenths of a second."""

GRAPH_STEPS: Final = 6
"""Values of `ef`, the candidates that a walk over a graph keeps, that are measured: each is double the one before, from
64 on."""

MOST_CANDIDATES: Final = 4096
"""Candidates at most whose exact distances are computed for a query: where more are needed, the codes say too little,
and all rows are compared."""

FREE_NS: Final = 120_000.0
"""Estimated nanoseconds of scanning partitions below which settings are not made cheaper: the rest of a search takes as
long, on a local disk. They are 8,192 rows of 32 bytes of codes. `benchmarks/recall_curves.py`: with as many rows of 192
bytes, a promise of 0.8 took as long as one of 0.95."""

ALWAYS_INDEXED_SHARE: Final = 4
"""Rows of a segment for each neighbour that is wanted, up to which every row of the segment is compared."""

CODE_NS: Final = 2.0
"""Nanoseconds per code in a partition, beside those of its bytes. This cost and those below are processor time of one
query; `benchmarks/nearest_costs.py` measures them. Only their ratios matter."""

CODE_BYTE_NS: Final = 0.4
"""Nanoseconds per byte of a code of product quantization: one lookup in the table of distances."""

TABLE_BYTE_NS: Final = 0.02
"""Nanoseconds per byte of the codebook of product quantization: a table of distances is computed for each partition."""

ROW_BYTE_NS: Final = 0.05
"""Nanoseconds per byte of a vector in a partition, where vectors themselves are compared and not codes."""

WALK_NS: Final = 700.0
"""Nanoseconds per candidate of a walk over a graph, beside those of its bytes."""

VECTORS_FOR_EACH: Final = 100
"""Vectors that an index returns for each vector of a query, per row that is wanted, where a row has several vectors.
With fewer, rows would be ranked by too few of their vectors. `benchmarks/multivectors.py`: of 10,000 rows, 25 find 0.95
of the neighbours, 50 find 0.98, 100 and more 0.995; 200 take 1.2 of the time."""

RANKED_FOR_EACH: Final = 20
"""Candidate rows whose vectors are compared exactly, per row that is wanted, where a row has several vectors.
`benchmarks/multivectors.py`: of 10,000 rows, from 2 to 80 find as many of the neighbours, in the same time; more are
for vectors that their codes tell less of."""

RANKED_AT_ONCE: Final = 1024
"""Rows of several vectors that are read and compared at a time. `benchmarks/costs.py`: within noise."""

WALK_BYTE_NS: Final = 0.2
"""Nanoseconds per byte of a candidate of a walk: several rows are compared for each candidate."""

CANDIDATE_NS: Final = 550.0
"""Nanoseconds per candidate whose exact distance is computed, beside those of its bytes."""

CANDIDATE_BYTE_NS: Final = 0.2
"""Nanoseconds per byte of a vector whose exact distance is computed, read at random from a file."""

REMOTE_CANDIDATE_NS: Final = 100_000.0
"""Nanoseconds per candidate that is read from an object store: most are a request of their own, of which the client
takes some 80 µs of processor time. More partitions, whose codes are cached, are then cheaper than more candidates.
`benchmarks/object_store.py --only search` prints requests and bytes with this value; no benchmark varies it."""

NAMED_SHARE: Final = 256
"""Rows of a segment for each one whose name was looked up, from which on all names are read. Of 1 million rows, 100
names take 0.2 ms where they are stored as they are, and 0.9 ms where they are packed; all take 1.6 and 13 ms, and twice
as much from files that were not read before."""

# Full-text search with a filter: see `scan.scored.candidates`.

CHECKED_FOR_EACH: Final = 16
"""Best rows on which a new filter is evaluated first, per row that is wanted: enough where one row in ten passes.
`benchmarks/costs.py`: where one in 6 or 12 passes, with fewer up to 1.7 times as long, with more up to 1.5 times."""

CHECKED_ROWS: Final = 4096
"""Best rows on which a new filter is evaluated at most, in tables up to `CHECKED_SHARE` times as large; if too few
pass, all rows that pass are looked for instead. `benchmarks/costs.py`: within noise for 64 to 384 wanted rows."""

CHECKED_SHARE: Final = 64
"""Inverse share of the rows of a larger table on which a new filter is evaluated at most: one in 64.
`benchmarks/costs.py`: where one in 1,000 of a million rows passes, with 256 fewer rows are checked, and it takes 1.3
times as long; within noise with more."""
