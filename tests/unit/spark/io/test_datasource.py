"""Which version a frame reads; by the calls that Spark makes, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_duck as ld
from lance_duck.spark.io.datasource import LanceDataSource


def test_a_tag_on_a_branch_is_read(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"id": [0]}), tmp_path)
    table.create_branch("side").insert(pa.table({"id": [1]}))
    table.insert(pa.table({"id": [2]}))
    table.tags.create("there", ("side", None))
    assert _ids(_source(tmp_path, tag="there")) == [0, 1]
    assert _ids(_source(tmp_path, branch="side")) == [0, 1]
    assert _ids(_source(tmp_path, branch="main")) == [0, 2]


def test_a_frame_stays_on_the_version_of_its_schema(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"id": [0]}), tmp_path)
    source = _source(tmp_path)
    schema = source.schema()
    table.insert(pa.table({"id": [1]}))
    table.add_columns({"n": "id + 1"})
    assert _ids(pickle.loads(pickle.dumps(source)), schema) == [0]
    assert _ids(_source(tmp_path)) == [0, 1]


def _source(path: Path, **options: str) -> LanceDataSource:
    return LanceDataSource({"path": str(path), **options})


def _ids(source: LanceDataSource, schema: Any = None) -> list[int]:
    reader = source.reader(source.schema() if schema is None else schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sorted(pa.Table.from_batches(batches)["id"].to_pylist())
