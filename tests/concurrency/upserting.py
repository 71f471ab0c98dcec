"""Concurrent writers that upsert the same keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import lance_duck as ld

OPTIONS = {"fsync": "false"}


def rows(keys: list[int], writer: int) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "writer": pa.array([writer] * len(keys), pa.int64())})


def upsert(dataset: Any, source: pa.Table) -> dict[str, int]:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    result: dict[str, int] = merge.conflict_retries(100).execute(source)
    return result


def upsert_often(uri: str, writer: int, keys: int, rounds: int, begin: Any) -> None:
    """Upsert keys 0 … keys - 1 in every round, a few at a time, from a handle that is stale most of the time."""
    dataset = ld.dataset(uri, storage_options=OPTIONS)
    begin.wait(60)
    for _ in range(rounds):
        for first in range(0, keys, 4):
            upsert(dataset, rows(list(range(first, min(keys, first + 4))), writer))
