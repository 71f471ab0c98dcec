from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.arguments import byte_count
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.costs import GROUP_BYTES, LEAST_GROUP_BYTES
from lance_duck.maintenance.options import CompactionOptions

WIDE = 256 << 10
LIMIT = 12 << 20
_POOLS: list[pa.MemoryPool] = []  # their memory may live on and is returned to them


def wide(first: int, last: int) -> pa.Table:
    """Rows of 256 KiB each, which do not compress."""
    rng = np.random.default_rng(first)
    values = [rng.bytes(WIDE) for _ in range(first, last)]
    return pa.table({"id": range(first, last), "x": pa.array(values, pa.large_binary())})


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    """32 MiB in eight fragments."""
    path = tmp_path / "t.lance"
    for at in range(0, 128, 16):
        ld.write_dataset(wide(at, at + 16), path, mode="append", storage_options={"fsync": "false"})
    return ld.dataset(path)


@pytest.fixture
def peak_of() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Gives the bytes that Arrow's pool gives out at most while something is done."""
    before = pa.default_memory_pool()

    def peak(work: Callable[[], object]) -> int:
        pool = pa.proxy_memory_pool(before)
        _POOLS.append(pool)
        pa.set_memory_pool(pool)
        work()
        return int(pool.max_memory())

    yield peak
    pa.set_memory_pool(before)


def test_a_compaction_respects_its_memory_limit(
    table: ld.LanceDataset, peak_of: Callable[[Callable[[], object]], int]
) -> None:
    rows = table.to_table()
    assert peak_of(lambda: table.optimize.compact_files(memory_limit="12MiB")) <= LIMIT
    assert len(table.get_fragments()) == 1
    assert table.to_table().equals(rows)


def test_a_merge_respects_its_memory_limit(
    table: ld.LanceDataset, peak_of: Callable[[Callable[[], object]], int]
) -> None:
    schema = table.schema

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(64, 192, 2):
            yield from wide(at, at + 2).to_batches()

    def merge() -> None:
        builder = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        result = builder.memory_limit(LIMIT).execute(pa.RecordBatchReader.from_batches(schema, batches()))
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (64, 64)

    assert peak_of(merge) <= LIMIT
    assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == list(range(192))


def test_parallel_groups_share_the_limit() -> None:
    assert CompactionOptions(num_threads=4).writers == 4
    assert CompactionOptions(num_threads=4).group_bytes is None
    assert CompactionOptions(num_threads=4, memory_limit=3 * GROUP_BYTES).writers == 3
    assert CompactionOptions(num_threads=4, memory_limit=3 * GROUP_BYTES).group_bytes == GROUP_BYTES
    assert CompactionOptions(num_threads=2, memory_limit=8 * GROUP_BYTES).group_bytes == 4 * GROUP_BYTES
    assert CompactionOptions(memory_limit=1).writers == 1
    assert CompactionOptions(memory_limit=1).group_bytes == LEAST_GROUP_BYTES


@pytest.mark.parametrize(
    ("said", "count"),
    [(5, 5), ("5", None), ("512MB", 512_000_000), ("1.5 GiB", 3 << 29), (" 2kb ", 2000), ("7B", 7)],
)
def test_a_number_of_bytes(said: int | str, count: int | None) -> None:
    if count is None:
        with pytest.raises(InvalidInputError, match="number of bytes"):
            byte_count(said, "memory_limit")
    else:
        assert byte_count(said, "memory_limit") == count


@pytest.mark.parametrize("said", [0, -1, True, "", "much", "0MB", "1 PB", 1.5, None])
def test_invalid_byte_counts_are_rejected(said: object) -> None:
    with pytest.raises(InvalidInputError, match="memory_limit"):
        byte_count(said, "memory_limit")
