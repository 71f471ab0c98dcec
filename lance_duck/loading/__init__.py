"""Ordered row selections, read in batches, for training loops with any library.

    from lance_duck.loading import RowSelection

    rows = RowSelection.of(ds, filter="label IS NOT NULL").shuffle(seed=7)
    train, test = rows.split([0.9, 0.1])
    for batch in train.shard(rank, world_size).batches(256, columns=["label", "vector"], form="numpy"): ...

You hold: a dataset. You get: a selection of its rows, and batches of these rows for Arrow, numpy or JAX.
A selection can be filtered, shuffled, split, sharded, stored and sent to other processes.
Never here: torch, which has its own package, and changes of a table.
"""

from lance_duck.loading.forms import to_jax, to_numpy
from lance_duck.loading.selection import RowSelection

__all__ = ["RowSelection", "to_jax", "to_numpy"]
