"""The thresholds by which a scan decides: each with its unit, its reason, and the benchmark that found it.

A threshold changes how fast an answer comes, never the answer. `benchmarks/costs.py` measures the processor time of
work on either side of a threshold, with the threshold as it is and with a quarter to four times of it; figures here are
of its runs on two cores, with tables of a million rows or fewer on a local disk. "Within noise" says that the five
values differed by less than a tenth, or without order. "Not measured" says that no benchmark has found the value: it is
a guess of a size. Bounds of memory stand beside what they bound.

How rows of a fragment are read is decided in `scan.read.row_access`.
"""

from __future__ import annotations

from typing import Final

# Rows of a fragment: see `choose_row_access`.

POINT_ROWS: Final = 128
"""Rows that are decoded one by one, whatever the size of the fragment: a page costs more. `benchmarks/costs.py`: 24 to
384 of 1,000 rows take 0.35 to 0.4 of the time of their pages; more may be as good where values are numbers or texts."""

POINT_SHARE: Final = 64
"""One row in so many: fewer rows of a fragment are decoded one by one, too. `benchmarks/costs.py`: of 250,000 rows, one
in 192 take half the time of their pages, one in 96 three quarters, one in 48 still a little less."""

DENSE_SHARE: Final = 4
"""One row in so many: of narrow columns, more rows are read with all rows between them. `benchmarks/costs.py`: so one
in 1.5 takes 0.4 of the time, one in 3 takes 0.85, one in 6 and fewer as long."""

WIDE_VALUE: Final = 1024
"""Bytes of a value from which the rows between those that are wanted are never read. `benchmarks/costs.py`: with
the rows between, values of 384 bytes of one row in 2 or 3 take 0.2 to 0.4 of the time, of 768 bytes 0.4 to 0.8."""

# Takes: decoded columns first, then the fragments.

CACHED_TAKE_ROWS: Final = 1 << 17
"""Rows of a take up to which decoded columns are used. `benchmarks/costs.py`: with them, takes of 12,000 to 200,000 of
200,000 rows take a quarter to a half of the time; see `benchmarks/caches.py` for 1 to 1000 rows."""

TAKES_BEFORE_CACHE: Final = 16
"""Takes of a column before it is decoded for the next ones: who takes once pays nothing. `benchmarks/costs.py`: of a
column of 200,000 rows, 6 takes last 1.5 times as long with 4, and 48 takes 1.3 times as long with 32."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Rows that are decoded in the time in which one take finds its rows: so many takes pay for a column.
`benchmarks/costs.py`: of a million rows, within a third from 8,192 to 131,072, either way."""

FRAGMENTS_OF_A_TAKE: Final = 64
"""Fragments of a take that are read at once: their rows wait in memory to be put in order. `benchmarks/costs.py`:
within noise from 16 to 256."""

# Rows that indexes chose.

FILTER_READ_AHEAD_ROWS: Final = 64
"""Rows up to which the columns of the result are read with those of the filter: one round of requests.
`benchmarks/costs.py`: within noise from 16 to 256 on a local disk."""

SELECTION_TASK_ROWS: Final = 1024
"""Rows of one fragment that are a task of their own; fewer are read with those of other fragments.
`benchmarks/costs.py`: with 256, 384 rows take 1.3 times as long; from 512 to 4,096 within noise."""

SELECTION_TASK_FRAGMENTS: Final = 64
"""Fragments at most whose few rows are one task. `benchmarks/costs.py`: within noise from 16 to 256."""

COUNTED_TASK_ROWS: Final = 1 << 20
"""Rows of a task of which nothing but their number is asked: they are not read. Not measured."""

RUN_ROWS: Final = 1024
"""Rows of a run, on average, from which runs are read as ranges. `benchmarks/costs.py`: as ranges, runs of 100 rows
take 6 times as long as the rows themselves, of 400 rows 1.3 to 1.9 times, of 3,000 about as long."""

# Index lookups.

LOOKED_AT_ROWS: Final = 256
"""Rows that other indexes leave and that are looked at rather than asked of one more index. `benchmarks/costs.py`: to
look at 200 rows takes 1.4 times as long as an answer of 1,600 rows, and to ask about 400 rows 0.85 of the time to look
at them."""

LOOKUP_ROWS: Final = 8
"""Rows of an index's answer that cost as much as one row that is looked at. `benchmarks/costs.py`: where 1,000 rows are
left, to ask for 24 times as many takes 2.4 to 3.6 times as long as to look at them, for 12 times as many 1.1 to 1.6
times, for 6 times as many about as long."""

ANSWER_SHARE: Final = 0.1
"""Part of the rows that a segment covers: of an answer with more, a scan is cheaper. `benchmarks/costs.py`: of a
million rows in no order, within a fifth from 0.025 to 0.4."""

ANSWER_ROWS: Final = 65_536
"""Rows of an answer that is never too much. `benchmarks/costs.py`: of 200,000 rows, within a sixth from 16,384 to
262,144."""

INDEXED_SHARE: Final = 0.5
"""Part of the rows that an index covers of a column that DuckDB is told is indexed. Not measured."""

# Scans: morsels.

FIRST_BYTES: Final = 512 * 1024
"""Bytes of the first morsel, so that the first batch comes soon. `benchmarks/costs.py`: within noise from 128 KiB to 2
MiB, for the first batch as for a whole scan."""

FIRST_ROWS: Final = 8192
"""Rows of the first morsel at most. `benchmarks/costs.py`: within noise from 2,048 to 32,768."""

MORSEL_GROWTH: Final = 4
"""Times that a morsel is larger than the one before it. `benchmarks/costs.py`: a scan of a million rows takes 3.7 times
as long where morsels do not grow; within noise from 2 to 16."""

MORSEL_BYTES: Final = 12 * 1024 * 1024
"""Bytes of a morsel: threads have enough to do, and caches hold it. `benchmarks/costs.py`: with 3 MiB, vectors take
half of the processor time, with 6 MiB three quarters; but each batch costs its consumer, see
`benchmarks/selective.py`."""

MORSEL_ROWS: Final = 245_760
"""Rows of a morsel at most: two row groups of DuckDB. `benchmarks/costs.py`: with 61,440, narrow columns take 1.4 times
as long; more is within noise."""

REMOTE_MORSEL_BYTES: Final = 32 << 20
"""Bytes of a morsel of an object store: pages that it cuts are asked for by more requests, and it has few of these.
`benchmarks/object_store.py`: with 16 MiB, all columns of fragments of 27 MiB take 81 requests, with 32 MiB 10."""

REMOTE_MORSEL_ROWS: Final = 1 << 20
"""Rows of a morsel of an object store at most: a page of eight-byte values has as many, and is read by one request.
Other values were not measured."""

LARGEST_BATCH: Final = MORSEL_ROWS
"""Rows of a batch at most where nobody asked: larger morsels are given out in pieces."""

BURST: Final = 4
"""Times that a batch may be larger than meant, where a filter keeps more than it did so far. Not measured."""

JOINED_FILE_BYTES: Final = 64 * 1024
"""Bytes of the data files that are read whole, and together with those of other fragments. `benchmarks/costs.py`: read
so, 200 files of 24 KiB take 0.4 of the time, of 48 KiB a quarter. Larger ones were not measured."""

JOINED_FRAGMENTS: Final = 256
"""Fragments that are read together at most, 16 MiB of files; a scan begins with one, for the first batch to come soon.
`benchmarks/costs.py`: within noise from 64 to 1,024, for 96 to 768 fragments."""

JOINED_ROWS: Final = 1 << 16
"""Rows of fragments that are read together at most: a small file may have millions of rows, of one value or of few
bits, which become one batch. Not measured."""

ALONE_BYTES: Final = 2 << 20
ALONE_FRAGMENTS: Final = 64
"""Bytes of a scan, in so many fragments at most, up to which the thread that asks reads all of it: to begin others and
hand them the interpreter takes 0.1 ms each, as long as it takes to decode 100 KiB. `benchmarks/merges.py`."""

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
"""Part of the rows that a filter keeps up to which it is applied here and not by DuckDB. `benchmarks/costs.py`: of
narrow columns, within a tenth from 0.01 to 0.08; with 0.005, 0.75 % of the rows take 1.4 times as long."""

PAYS_BELOW_WHEN_WIDE: Final = 0.4
"""The same of wide rows. `benchmarks/costs.py`: of vectors of 768 bytes on a local disk, 30 or 60 % of the rows take
half of the time if DuckDB filters, 15 % take 0.8 of it. Rows that are far away are not measured."""

WIDE_ROW: Final = 512
"""Bytes of a wide row. Not measured."""

SAMPLE_SLICES: Final = 8
"""Slices of a table in which the rows that a filter keeps are counted. `benchmarks/costs.py`: within noise from 2 to
32."""

SAMPLE_SLICE_ROWS: Final = 1024
"""Rows of such a slice. `benchmarks/costs.py`: within noise from 256 to 4,096."""

RARE_KEY_SHARE: Final = 500
"""One row in so many: where one key finds fewer, other keys are taken to do so, too. Not measured."""

# Texts that repeat: see `scan.read.dictionary_hint`.

REPEATED_TEXTS: Final = 64
"""Different texts of a sample up to which a column is given as a dictionary. `benchmarks/costs.py`: within noise from
16 to 256, grouped by DuckDB from files without dictionaries."""

REPEATED_TEXT_BYTES: Final = 12
"""Bytes of a text, on average, up to which it is: longer texts cost more to compare than to look up.
`benchmarks/costs.py`: within noise from 3 to 48, grouped by DuckDB."""

TEXT_SAMPLE_ROWS: Final = 1024
"""Rows of the sample. Not measured."""

TEXT_SAMPLE_FRAGMENTS: Final = 32
"""Fragments of a table of which all pages are looked at. Not measured."""

# Predicates.

ASKED_ENTRIES: Final = 4096
"""Entries of a dictionary that are always asked instead of the rows. Not measured."""

COMPARED_VALUES: Final = 32
"""Integers of an IN of DuckDB's up to which each is compared: faster than a lookup. `benchmarks/costs.py`: 12 integers
of a million rows take half of the time, 24 take three quarters, 48 as long."""

GATHERED_OPERANDS: Final = 64
"""Operands of an OR from which equalities of one column become one IN. `benchmarks/costs.py`: as one IN, 96 take half
of the time, 48 about three quarters; 24 and fewer differ without order."""

LISTS_IN_TEXT: Final = 256
"""Characters of a filter from which its lists are looked at as a whole. Not measured."""

LONG_TEXT: Final = 4096
"""Characters of a filter that is not worth a place in a cache: it has long lists, and rarely comes again."""

# Searches.

ALWAYS_COMPARED_ROWS: Final = 1024
"""Rows of a filter that a search compares one by one, without its index, and so exactly. `benchmarks/costs.py`: to
compare 768 to 1,536 of 100,000 rows takes 1.6 to 2.1 times the processor time of an index that rounds, and 3,072, of
which blocks are read whole, 9 times."""

COMPARED_SHARE: Final = 200
"""One row in so many: fewer rows of a filter are compared one by one, too. `benchmarks/costs.py`: of 400,000 rows, to
compare one in 75 takes 5 times the processor time of an index that rounds, one in 300 takes 1.7 to 1.9 times."""

PRODUCT_QUERIES: Final = 8
"""Queries that are worth a product of matrices. `benchmarks/costs.py`: of 100,000 vectors of 64 numbers, a product
takes 0.4 of the time for 24 queries, 0.6 for 12, 0.85 for 6, and 1.2 times as long for 3."""

PRODUCT_NEIGHBOURS: Final = 512
"""Neighbours up to which the product leaves few rows to compare. `benchmarks/costs.py`: for 16 queries, it takes 0.8 of
the time at 192 neighbours, as long at 384, 1.4 times as long at 768, and twice at 1,536."""

PRODUCT_ROWS: Final = 2048
"""Rows of one product: its scores stay in the cache of a core. `benchmarks/costs.py`: 512 take 1.5 times as long, 1,024
take 1.2 times, up to 8,192 within noise."""

PRODUCT_QUERIES_AT_ONCE: Final = 32
"""Queries of one product. `benchmarks/costs.py`: of 128 queries, 8 at once take twice as long, 16 take 1.25 times, 128
take 0.8 of the time."""

LONE_PRODUCT: Final = 1 << 18
"""Multiplications of a product that BLAS does in the calling thread: its threads would be in the way of those that
compare blocks. `benchmarks/costs.py`: with four times as many, 30 times the processor time; fewer are within noise."""

BLOCK_BYTES: Final = 8 << 20
"""Bytes of the vectors that one thread compares at a time. `benchmarks/costs.py`: within a fifth from 2 to 32 MiB."""

REMOTE_BLOCKS: Final = 16
"""Blocks of an object store that are asked for at once, at most 256 MiB. `benchmarks/object_store.py`: where each core
asks for one at a time, a search waits for one fragment after the other."""

LEAST_BLOCK_BYTES: Final = 1 << 20
"""Bytes of pages that are worth a block of their own. Not measured."""

SPARSE_SHARE: Final = 64
"""One row in so many: of a mapped file a block with more is read whole, as what lies between is not touched.
`benchmarks/costs.py`: of vectors of 128 bytes, one in 96 takes a fifth of the time if it is read alone, one in 48 takes
1.3 times as long."""

SPARSE_SHARE_REMOTE: Final = 2
"""The same of a file that is read by requests. Not measured."""

RANKED_PAIRS: Final = 4096
"""Pairs of a query and a row that one thread ranks again at a time: more are shared among threads. Not measured."""

SPARSE_ROWS: Final = 8192
"""Rows that are compared at a time where they are read one by one. Not measured."""

EXTREMES_ROWS: Final = 8192
"""Rows whose lengths are computed at a time. Not measured."""

# Full-text search of rows that no index covers.

ANALYSED_ROWS: Final = 1 << 16
"""Rows of texts that are analysed together, of one fragment or of several small ones. Not measured."""

ANALYSED_BYTES: Final = 256 << 20
"""Bytes of analysed texts that are kept for the next queries of a table. Not measured: about 30 million words."""

# Settings of searches that reach a recall: see `scan.nearest.settings`. They are measured once for a segment, a number
# of neighbours and a share of the rows.

SAMPLE_QUERIES: Final = (64, 256)
"""Queries that are drawn, at least and at most: the standard error of a recall of 0.95 is about 0.01 then."""

SAMPLE_NEIGHBOURS: Final = 1024
"""True neighbours of all queries together from which on more queries tell little more."""

SAMPLE_PART: Final = 16
"""One byte in so many: vectors of a large segment that are compared with the queries, so that measuring costs a part of
what one search without an index reads."""

LEAST_SAMPLE_BYTES: Final = 64 << 20
"""Bytes of vectors that are compared with all queries, if there are as many: a tenth of a second of two cores."""

MOST_SAMPLE_BYTES: Final = 1 << 30
"""Bytes of vectors that are compared at most, however large the segment: some seconds. The fewer they are, the farther
away the true neighbours for which they stand, and the more costly the settings."""

SAMPLE_RUN_ROWS: Final = 32
"""Rows that lie side by side among those compared: fewer are more like the whole, more are read faster."""

REMOTE_SAMPLE_BYTES: Final = 8 << 20
"""Bytes of vectors of an object store that are compared: what a tenth of a second brings."""

REMOTE_SAMPLE_RUNS: Final = 32
"""Runs of rows that these are, and those that are queries: each is a request, and all are sent at once."""

SAMPLE_CODES: Final = 1 << 25
"""Codes that are looked at with all queries, or with 32 of them: some tenths of a second."""

SAMPLE_WALKS: Final = 1 << 17
"""Candidates that walks over graphs keep, with all queries, or with 32 of them: some tenths of a second."""

GRAPH_STEPS: Final = 6
"""Times that the candidates of a walk are doubled, from 64 on."""

MOST_CANDIDATES: Final = 4096
"""Candidates that are ranked again at most: where more are needed, codes say too little, and all rows are compared."""

FREE_NS: Final = 120_000.0
"""Nanoseconds of the look into lists that is always taken, estimated: all the rest of a search takes as long, on a
local disk. That is 8,192 rows of 32 bytes of codes. `benchmarks/recall_curves.py`: with as many rows of 192 bytes, a
promise of 0.8 took as long as one of 0.95."""

ALWAYS_INDEXED_SHARE: Final = 4
"""Rows in a segment for each that is wanted, up to which it is looked at as a whole."""

CODE_NS: Final = 2.0
"""Nanoseconds of a code in a list, beside those of its bytes. This one and those below are of the processor, of one
query at a time; `benchmarks/nearest_costs.py` measures them. Only their ratios matter."""

CODE_BYTE_NS: Final = 0.4
"""Nanoseconds of a byte of a code of product quantization, which is looked up."""

TABLE_BYTE_NS: Final = 0.02
"""Nanoseconds of a byte of the codebook of product quantization: each partition has a table of distances of its own."""

ROW_BYTE_NS: Final = 0.05
"""Nanoseconds of a byte of a vector in a list that is compared itself."""

WALK_NS: Final = 700.0
"""Nanoseconds of a candidate of a walk over a graph, beside those of its bytes."""

VECTORS_FOR_EACH: Final = 100
"""Vectors that each vector of a query looks for in an index, for each row that is wanted, of rows of several vectors.

With fewer, rows are chosen by little that is known of them. No benchmark measures it.
"""

RANKED_FOR_EACH: Final = 20
"""Rows that are compared of those that an index finds, for each row that is wanted, of rows of several vectors.

No benchmark measures it.
"""

RANKED_AT_ONCE: Final = 1024
"""Rows of several vectors that are read and compared at once. Not measured."""

WALK_BYTE_NS: Final = 0.2
"""Nanoseconds of a byte of a candidate of a walk: several rows are compared for each one."""

CANDIDATE_NS: Final = 550.0
"""Nanoseconds of a candidate that is ranked again, beside those of its bytes."""

CANDIDATE_BYTE_NS: Final = 0.2
"""Nanoseconds of a byte of a vector that is ranked again, read somewhere in a file."""

# Full-text search with a filter: see `scan.scored.candidates`.

CHECKED_FOR_EACH: Final = 16
"""Rows that a new filter is asked of for each row that is wanted: enough where one in ten passes. Not measured."""

CHECKED_ROWS: Final = 4096
"""Rows that it is asked of at most, of any table, before all rows that pass are looked for. Not measured."""

CHECKED_SHARE: Final = 64
"""One row in so many: of large tables, it is asked of more. Not measured."""
