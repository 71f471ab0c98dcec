"""Read-ahead of a scan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.scan.costs import SMALL_BATCH_BYTES


def test_batches_of_wide_values_are_small_from_the_start(tmp_path: Path) -> None:
    size, rng = 128 << 10, np.random.default_rng(0)
    values = [rng.bytes(size) for _ in range(80)]
    table = pa.table({"id": range(80), "b": pa.array(values, pa.binary())})
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(table, uri)
    batches = [*ld.dataset(uri).to_batches()]
    assert batches[0].num_rows == SMALL_BATCH_BYTES // (size + 8)
    assert len(batches) > 2
    assert pa.Table.from_batches(batches).equals(table.cast(batches[0].schema))
