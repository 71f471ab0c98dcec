"""The thresholds by which vector indexes are built, searched and kept: each with its unit and its reason.

A threshold changes speed, memory and the recall of an approximate search, never what an exact one finds.
`benchmarks/vectors.py` measures speed and recall of what they give together. Parameters of the algorithms that build
graphs stand beside these.
"""

from __future__ import annotations

from typing import Final

# Memory

KEPT_BYTES: Final = 2 << 30
"""Bytes of partitions that an open index keeps: a bound of memory, 20 million vectors of 96 codes with their rows."""

LOAD_BYTES: Final = 64 << 20
"""Bytes of partitions that are read, or of vectors that are decoded, at once: a bound of memory."""

DECODED_ALONE: Final = 1 << 22
"""Numbers up to which one thread decodes vectors, in a millisecond: faiss may wait longer than that for a second
one."""

# Searching

BATCH_QUERIES: Final = 32
"""Queries from which on they are searched partition by partition: one finds in the processor's cache what another has
read."""

SLICE_QUERIES: Final = 64
"""Queries that one thread searches partitions for at a time: 1,000 queries in one slice take a tenth more time
(`benchmarks/vectors.py`)."""

LEAST_EF: Final = 64
"""Candidates of a walk over a graph, with a filter or without, at least: with fewer the recall falls steeply."""

ALLOWED_OF_EXPECTED: Final = 0.5
DEVIATIONS: Final = 3
"""Share of the allowed vectors that chance makes expect in the partitions searched first, and standard deviations below
it, under both of which the filter is tied to the neighbours of a query, and measured settings do not hold. Where a walk
over a graph finds less than that share of the allowed vectors that chance makes expect, all allowed vectors of the
partition are compared. Walks with a filter keep as many deviations more than k candidates."""

TIED_DEVIATIONS: Final = 6
TIED_UNEVENNESS: Final = 0.1
"""Standard deviations beyond what chance explains, and mean relative deviation of the allowed share of a partition
beyond it, over both of which a filter is tied to the vectors: measured settings do not hold, and partitions are
searched by the neighbours that they make expect. Below the second one partitions hold nearly as many allowed vectors as
settings count on."""

SPREAD_PARTITIONS: Final = 32
SPREAD_VECTORS: Final = 256
"""Partitions and vectors of the sample on which the spread about centroids is measured: 65,000 pairs tell its deviation
within some hundredths, in milliseconds."""

MANY_QUERIES: Final = 20
"""Queries from which on they share the work of a comparison of all vectors: decoding, and the way from memory."""

WALK: Final = 10
WALK_TOGETHER: Final = 40
"""Vectors that are compared in the time of one candidate of a walk: for few queries, and from `MANY_QUERIES` on."""

# Building

JOINED: Final = 1 << 13
"""Vectors of a partition from which on its graph is joined from near neighbours, not built by inserting vectors."""

SMALL_GRAPH: Final = 1 << 14
"""Vectors of a graph below which one thread builds it, while others build others; a larger one takes all threads."""

PARTITIONS_TOGETHER: Final = 8
"""Partitions whose vectors are in memory while their graphs are built: a bound of memory."""

THREADED_PRODUCTS: Final = 1 << 30
"""Multiplications in a round of training from which on several threads take part; below, waiting costs more."""

TRAINING_ROUNDS: Final = 20
"""Rounds of training at most; further rounds change hardly anything."""

SETTLED_SAMPLE: Final = 64
"""Vectors for each centroid with which most rounds of training are done: they take half of the time of 200, for
partitions that hold as much (`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

EVENNESS: Final = 0.3
"""The price of a pair of vectors in one partition, in mean squared distances over the mean size: 5 of 200 partitions
hold 1,084 rows at 0.3 and 1,362 without (`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

# Rebuilding

LOST_SHARE: Final = 0.2
"""Deleted share of the vectors of a partition above which its graph is rebuilt."""

GROWN: Final = 2
"""Growth of an index since its training, as a factor, from which on it may be retrained: before, too little changed."""

UNEVEN: Final = 8
"""Multiple of the mean size from which on a partition is too large: a search of it takes that much longer."""

LARGE: Final = 8192
"""Vectors that a partition may have, whatever the size of the others."""

CROWDED: Final = 2
"""Ratio of the number of partitions that suits the vectors to the present one, from which on an index is retrained."""
