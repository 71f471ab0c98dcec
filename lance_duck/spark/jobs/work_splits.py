"""Divides the fragments of a table among tasks."""

from __future__ import annotations

from collections.abc import Iterable

from lance_duck.errors import InvalidInputError
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import FEWEST_ROWS, MOST_ROWS, SPLITS


def shares(
    snapshot: Snapshot,
    parallelism: int | None = None,
    fragments: Iterable[int] | None = None,
    fewest_rows: int = FEWEST_ROWS,
) -> list[tuple[int, ...]]:
    """Divide the fragments of a version into runs with similar row counts. Fragments are not split.

    Args:
        snapshot: The version.
        parallelism: Target number of runs. By default, it depends on the size of the table.
        fragments: Ids of the fragments. By default, all fragments.
        fewest_rows: Minimum row count of a run. Ignored if `parallelism` is given.

    Returns: The fragment ids of each run, in table order. Empty without fragments.
    """
    fragment_ids = None if fragments is None else frozenset(fragments)
    rows = [(f.id, snapshot.num_rows(f)) for f in snapshot.fragments if fragment_ids is None or f.id in fragment_ids]
    total = sum(count for _, count in rows)
    if parallelism is None:
        most = max(min(total // SPLITS, MOST_ROWS), fewest_rows)
    else:
        most = -(-total // check_parallelism(parallelism))
    splits: list[list[int]] = []
    num_rows = 0
    for fragment_id, count in rows:
        if not splits or (num_rows and num_rows + count > most):
            splits.append([])
            num_rows = 0
        splits[-1].append(fragment_id)
        num_rows += count
    return [tuple(each) for each in splits]


def check_parallelism(parallelism: int | None) -> int:
    """Check a user's `parallelism`, and return it. Returns 1 for None.

    Raises:
        InvalidInputError: The value is not a number, or below 1.
    """
    if parallelism is None:
        return 1
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidInputError("parallelism", expected="a number of tasks", found=repr(parallelism))
    return parallelism
