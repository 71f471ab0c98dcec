"""The thresholds for building, searching and caching vector indexes, with units and reasons.

Thresholds change speed, memory and the recall of approximate searches, never the result of an exact search.
`benchmarks/vectors.py` measures their combined speed and recall. Parameters of the graph algorithms are in their
modules.
"""

from __future__ import annotations

from typing import Final

# Memory

KEPT_BYTES: Final = 2 << 30
"""Partition cache size of an open index, in bytes: 20 million vectors of 96 codes with their rows."""

LOAD_BYTES: Final = 64 << 20
"""Size of the partitions that are read, or of the vectors that are decoded, at once, in bytes. Bounds memory."""

DECODED_ALONE: Final = 1 << 22
"""Maximum count of numbers that one thread decodes, in a millisecond. faiss may wait longer than that for a second
thread."""

# Searching

BATCH_QUERIES: Final = 32
"""Minimum number of queries for searching partition by partition. Queries then share the processor's cache."""

SLICE_QUERIES: Final = 64
"""Number of queries per thread whose partitions are searched. 1,000 queries in one slice take a tenth more time
(`benchmarks/vectors.py`)."""

LEAST_EF: Final = 64
"""Minimum number of candidates of a graph walk, with or without a filter. With fewer, the recall falls steeply."""

ALLOWED_OF_EXPECTED: Final = 0.5
DEVIATIONS: Final = 3
"""A filter is tied to a query's neighbours if the partitions searched first have fewer allowed vectors than this share
of the expected number, and fewer than the expected number less this many standard deviations. Measured settings do not
hold then. If a graph walk finds less than that share of the expected allowed vectors, all allowed vectors of the
partition are compared. Filtered walks keep `DEVIATIONS` standard deviations more than k candidates."""

TIED_DEVIATIONS: Final = 6
TIED_UNEVENNESS: Final = 0.1
"""A filter is tied to the vectors if the allowed shares of partitions deviate from chance by more than this many
standard deviations, and by more than this mean relative unevenness. Measured settings do not hold then, and partitions
are searched by their expected neighbours. Below the unevenness, partitions have nearly as many allowed vectors as
settings assume."""

SPREAD_PARTITIONS: Final = 32
SPREAD_VECTORS: Final = 256
"""Sample size in partitions and vectors for measuring the spread around centroids. 65,000 pairs give its deviation to a
few hundredths, in milliseconds."""

MANY_QUERIES: Final = 20
"""Minimum number of queries that share a comparison of all vectors, its decoding and its memory reads."""

WALK: Final = 10
WALK_TOGETHER: Final = 40
"""Number of vectors that a comparison covers in the time of one walk candidate, for few queries and for at least
`MANY_QUERIES`."""

# Building

JOINED: Final = 1 << 13
"""Minimum partition size, in vectors, for joining the graph from near neighbours instead of inserting vectors."""

SMALL_GRAPH: Final = 1 << 14
"""Smaller graphs, in vectors, are built by one thread each, in parallel. Larger ones use all threads."""

PARTITIONS_TOGETHER: Final = 8
"""Number of partitions whose vectors are in memory while their graphs are built. Bounds memory."""

THREADED_PRODUCTS: Final = 1 << 30
"""Minimum number of multiplications per training round for several threads. Below it, waiting costs more."""

TRAINING_ROUNDS: Final = 20
"""Maximum number of training rounds. Further rounds change hardly anything."""

SETTLED_SAMPLE: Final = 64
"""Number of vectors per centroid in most training rounds. They take half of the time of 200, and partitions are equally
even (`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

EVENNESS: Final = 0.3
"""The price of a pair of vectors in one partition, in mean squared distances over the mean size: 5 of 200 partitions
hold 1,084 rows at 0.3 and 1,362 without (`benchmarks/partition_costs.py --rows 40000 --dimension 32`)."""

# Rebuilding

LOST_SHARE: Final = 0.2
"""Graphs are rebuilt if more than this share of a partition's vectors was deleted."""

GROWN: Final = 2
"""Minimum growth factor since the last training for retraining. Below it, too little has changed."""

UNEVEN: Final = 8
"""Partitions above this multiple of the mean size are too large. Their searches take that much longer."""

LARGE: Final = 8192
"""Partitions of up to this many vectors are never too large, regardless of the others."""

CROWDED: Final = 2
"""Minimum ratio of the suitable number of partitions to the present one for retraining."""
