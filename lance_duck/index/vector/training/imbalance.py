"""The rule for retraining an index because its partitions are unbalanced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.errors import LanceDuckError
from lance_duck.index.vector.costs import CROWDED, GROWN, LARGE, UNEVEN
from lance_duck.index.vector.details import trained_rows, vector_parameters
from lance_duck.index.vector.training.index_spec import VectorSpec


def is_outgrown(opened: Sequence[Any], details: bytes) -> bool:
    """Return whether an index should be retrained: it has grown, and its partitions are uneven or too large.

    Args:
        opened: All open segments of the index. They share the centroids of the first one.
        details: Details of the first segment. If they do not store the number of trained vectors, the result is False.
            This is the case for centroids that a user provided.
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
        spec = VectorSpec.of(vector_parameters(details), pa.list_(item, opened[0].dim))
    except LanceDuckError:
        return False
    return spec.partitions_for(count) >= CROWDED * len(sizes)
