from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from unit.index.plain import PlainKind

import lance_duck as ld
from lance_duck.index import registry
from lance_duck.snapshot import Snapshot, open_snapshot

Table = Callable[..., Snapshot]


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> PlainKind:
    """A kind that the registry knows."""
    made = PlainKind()
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, registry.KindEntry.of(made)))
    return made


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Writes a table with x = 0, 1, 2, … in fragments of 10 rows; every fifth x is null."""

    def write(rows: int = 40, *, stable: bool = False) -> Snapshot:
        x = pa.array([None if i % 5 == 4 else i for i in range(rows)], pa.int64())
        data = pa.table({"x": x, "y": range(rows), "s": [f"s{i}" for i in range(rows)]})
        uri = str(tmp_path / "t.lance")
        ld.write_dataset(data, uri, max_rows_per_file=10, enable_stable_row_ids=stable)
        return open_snapshot(uri)

    return write
