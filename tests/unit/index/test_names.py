from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.names import Follower
from lance_duck.snapshot import Snapshot, open_snapshot

SIZE = 10


def indexed(path: Path, fragments: int, deleted: str | None) -> tuple[Snapshot, Segment]:
    """A table of fragments of 10 rows, all but the last one covered by a segment."""
    for i in range(fragments):
        rows = pa.table({"id": range(SIZE * i, SIZE * (i + 1))})
        ds = ld.write_dataset(rows, path, mode="append" if i else "create")
        if i == fragments - 2:
            ds.create_scalar_index("id", "BTREE")
    if deleted is not None:
        ds.delete(deleted)
    snapshot = open_snapshot(str(path))
    return snapshot, catalog(snapshot).over("id")[0].segments[0]


def names(*rows: tuple[int, int]) -> np.ndarray:
    return np.array([fragment << 32 | offset for fragment, offset in rows], np.uint64)


@pytest.mark.parametrize("fragments", [2, 4])
@pytest.mark.parametrize(("deleted", "gone"), [(None, []), ("id IN (3, 25)", [3, 25]), ("id = 11", [11])])
@pytest.mark.parametrize("keeps_deleted", [False, True])
def test_rows_are_live_if_covered_and_not_deleted(
    fragments: int, deleted: str | None, gone: list[int], keeps_deleted: bool, tmp_path: Path
) -> None:
    snapshot, segment = indexed(tmp_path / "t", fragments, deleted)
    rows = np.random.default_rng(0).permutation(SIZE * fragments)
    asked = names(*((int(row) // SIZE, int(row) % SIZE) for row in rows))

    addresses, lives = Follower(snapshot, segment, keeps_deleted=keeps_deleted).follow(asked)

    np.testing.assert_array_equal(addresses, asked)
    covered = SIZE * (fragments - 1)
    assert lives.tolist() == [row < covered and (keeps_deleted or row not in gone) for row in rows.tolist()]


@pytest.mark.parametrize("fragments", [2, 4])
def test_a_row_beyond_its_fragment_is_rejected(fragments: int, tmp_path: Path) -> None:
    snapshot, segment = indexed(tmp_path / "t", fragments, None)

    with pytest.raises(CorruptError, match="a row offset is out of range in fragment 0: expected below 10, found 12"):
        Follower(snapshot, segment).follow(names((0, 3), (0, 12), (9, 99), (0, 14)))
