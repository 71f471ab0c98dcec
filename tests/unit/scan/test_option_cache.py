"""Requested columns of a version are resolved once per Arrow form."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lance_duck as ld
from lance_duck.scan.options import OptionCache, ScanOptions


def test_projections_are_cached_by_requested_types(tmp_path: Path) -> None:
    snapshot = ld.write_dataset(pa.table({"s": ["a", "b"], "x": [1, 2]}), tmp_path / "t.lance").handle.snapshot
    cache, options = OptionCache(), ScanOptions(columns=["s", "x"])
    plain, large = {"s": pa.string()}, {"s": pa.large_string()}
    first = cache.projection(snapshot.schema, options, large)
    assert cache.projection(snapshot.schema, options, dict(large)) is first
    assert first.schema.field("s").type == pa.large_string()
    assert cache.projection(snapshot.schema, options, plain).schema.field("s").type == pa.string()
    assert cache.projection(snapshot.schema, options, {}) is not first


def test_duckdb_receives_the_types_of_each_scan(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"s": ["a", "b"]}), tmp_path / "t.lance")
    for type_ in (pa.string(), pa.large_string(), pa.string()):
        assert dataset.duckdb_reader(pa.schema([("s", type_)]), None).read_all().schema.field("s").type == type_
