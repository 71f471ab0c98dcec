"""Imbalance of partitions: when an index is to be trained anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.errors import LanceDuckError
from lance_duck.index.vector.storage.details import parameters_of, trained_rows
from lance_duck.index.vector.training.index_spec import VectorWish

GROWN: Final = 2  # times the vectors that it was trained with: below that more training changes little
UNEVEN: Final = 8  # times the mean: to look into such a partition takes that much longer
LARGE: Final = 8192  # vectors that a partition may have however many others have
CROWDED: Final = 2  # times as many partitions would suit the vectors


def is_outgrown(opened: Sequence[Any], details: bytes) -> bool:
    """Return whether an index is better trained anew: it has grown, and its partitions are uneven, or too large.

    Args:
        opened: All its segments, which were made with the centroids of the first one.
        details: Of the first one. Where they do not say how many vectors it was trained with, as with centroids of a
            user, the answer is no.
    """
    trained = trained_rows(details)
    count = sum(index.num_rows for index in opened)
    if not trained or count < GROWN * trained:
        return False
    partitions = [index.files.partitions.lengths for index in opened]
    if any(len(lengths) != len(partitions[0]) for lengths in partitions):
        return True
    sizes = np.sum(partitions, axis=0)
    if int(sizes.max()) > max(LARGE, UNEVEN * count / len(sizes)):
        return True
    item = pa.uint8() if opened[0].metric == "hamming" else pa.float32()
    try:
        wish = VectorWish.of(parameters_of(details), pa.list_(item, opened[0].dim))
    except LanceDuckError:
        return False
    return wish.partitions_for(count) >= CROWDED * len(sizes)
