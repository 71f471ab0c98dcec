"""The thresholds for building, searching and caching vector indexes, with units and reasons.

Thresholds change speed, memory and the recall of approximate searches, never the result of an exact search.
`benchmarks/vectors.py` measures their combined speed and recall. Parameters of the graph algorithms are in their
modules.
"""

from __future__ import annotations

from typing import Final

# Memory

KEPT_BYTES: Final = 2 << 30
"""Partition cache size of an open index, in bytes: 20 million codes of 96 bytes with their rows."""

LOAD_BYTES: Final = 64 << 20
"""Size of the partitions that are read together, and of the vectors that are decoded together, in bytes. Limits
memory."""

DECODED_ALONE: Final = 1 << 22
"""Maximum count of numbers (vectors times dimensions) that one thread decodes alone. This takes a millisecond, and
faiss may wait longer than that for a second thread."""

# Searching

BATCH_QUERIES: Final = 32
"""Minimum number of queries for searching partition by partition. Queries then share the data in the processor's
cache."""

SLICE_QUERIES: Final = 64
"""Number of queries in a slice that one thread searches. With 1,000 queries in one slice, searches take a tenth more
time (`benchmarks/vectors.py`)."""

LEAST_EF: Final = 64
"""Minimum number of candidates of a graph walk, with or without a filter. With fewer, the recall falls steeply."""

ALLOWED_OF_EXPECTED: Final = 0.5
DEVIATIONS: Final = 3
"""A filter is tied to a query's neighbours if two conditions are met. The partitions that are searched first have less
than this share of the expected number of allowed vectors, and at least this many standard deviations fewer than
expected. The measured settings are not valid then. If a graph walk finds less than that share of the expected allowed
vectors, all allowed vectors of the partition are compared. Filtered walks keep `DEVIATIONS` standard deviations more
than k candidates."""

TIED_DEVIATIONS: Final = 6
TIED_UNEVENNESS: Final = 0.1
"""A filter is tied to the vectors if the shares of allowed vectors differ between partitions by more than both limits:
the number of standard deviations from chance, and the mean relative unevenness. The measured settings are not valid
then, and partitions are searched in the order of their expected neighbours. Below the limit of unevenness, partitions
have nearly as many allowed vectors as the settings assume."""

SPREAD_PARTITIONS: Final = 32
SPREAD_VECTORS: Final = 256
"""Sample size in partitions and in vectors for measuring the spread around centroids. 65,000 pairs determine the
deviation to a few hundredths, and take milliseconds."""

MANY_QUERIES: Final = 20
"""Minimum number of queries for comparing all vectors in one step. The queries share decoding and memory reads."""

WALK: Final = 10
WALK_TOGETHER: Final = 40
"""Number of vectors that can be compared in the time that one candidate of a walk takes. `WALK` applies to few queries,
and `WALK_TOGETHER` to at least `MANY_QUERIES`."""

# Building

JOINED: Final = 1 << 13
"""Minimum partition size for joining graphs from near neighbours instead of inserting vectors, in vectors."""

SMALL_GRAPH: Final = 1 << 14
"""Minimum size of graphs that are built by all threads, in vectors. Smaller graphs are built in parallel, each by one
thread."""

PARTITIONS_TOGETHER: Final = 8
"""Number of partitions whose vectors are in memory while their graphs are built. Limits memory."""

THREADED_PRODUCTS: Final = 1 << 30
"""Minimum number of multiplications per training round for using several threads. With fewer, threads wait longer for
each other than they compute."""

TRAINING_ROUNDS: Final = 20
"""Maximum number of training rounds. Further rounds hardly change the result."""

SETTLED_SAMPLE: Final = 64
"""Number of vectors per centroid in most training rounds. Compared with 200 vectors, training takes half of the time,
and partitions are equally even (`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

EVENNESS: Final = 0.3
"""Price of each pair of vectors in the same partition. The unit is the mean squared distance divided by the mean
partition size. A search of 5 of 200 partitions compares 1,084 rows at a price of 0.3, and 1,362 rows without a price
(`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

# Rebuilding

LOST_SHARE: Final = 0.2
"""Maximum share of deleted vectors for keeping the graph of a partition. With a larger share, the graph is rebuilt."""

GROWN: Final = 2
"""Minimum growth factor since the last training for retraining. Below it, too little has changed."""

UNEVEN: Final = 8
"""Maximum partition size, as a multiple of the mean size. Searches of larger partitions take too long."""

LARGE: Final = 8192
"""Partitions with at most this many vectors are never too large, even if the mean size is small."""

CROWDED: Final = 2
"""Minimum ratio of the suitable number of partitions to the current number for retraining."""
