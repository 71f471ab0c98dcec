"""Index segments that also hold values of other columns (covering fields): they are searched by their key."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.wire.flags import COVERED_INDICES
from lance_duck.wire.index import index_from_proto


def covering(path: str, *names: str) -> ld.LanceDataset:
    """Note in the entry of the only index that it holds values of some columns, and return the table."""
    dataset = ld.dataset(path)
    snapshot = dataset.handle.snapshot
    (entry,) = snapshot.indices
    proto = type(entry.proto).FromString(entry.proto.SerializeToString())
    extra = [snapshot.schema.by_path(name).id for name in names]
    proto.fields.extend(extra)
    proto.covering_fields.extend(extra)
    after = commit(snapshot, CreateIndex((index_from_proto(proto, "here"),), (entry,)))
    assert after.manifest.reader_flags & COVERED_INDICES
    return ld.dataset(path)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
def test_scalar_covering_indexes_are_searched_by_their_key(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    table = lance.write_dataset(pa.table({"id": range(1000), "x": range(1000), "y": range(1000)}), path)
    table.create_scalar_index("id", kind)
    dataset = covering(path, "x", "y")
    plan = dataset.scanner(filter="id = 7").explain_plan()
    assert "id_idx" in plan
    assert "no index on id" not in plan
    assert "id_idx" not in dataset.scanner(filter="x = 7").explain_plan()
    for filter_ in ("id = 7", "x = 7", "id > 990 AND x < 995"):
        found = dataset.to_table(filter=filter_).sort_by("id")
        assert found == lance.dataset(path).to_table(filter=filter_).sort_by("id")
    dataset.delete("id = 8")
    dataset.optimize.optimize_indices()
    assert dataset.to_table(filter="id IN (7, 8, 9)")["x"].to_pylist() == [7, 9]


def test_vector_covering_indexes_are_searched_by_their_first_field(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    values = np.random.default_rng(3).random((500, 8), np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 8)
    lance.write_dataset(pa.table({"id": range(500), "v": vectors, "x": range(500)}), path).create_index(
        "v", "IVF_FLAT", num_partitions=2
    )
    dataset = covering(path, "x")
    query = {"column": "v", "q": values[17], "k": 5, "nprobes": 2}
    assert "v_idx" in dataset.scanner(nearest=query).explain_plan()
    expected = lance.dataset(path).to_table(nearest=query)["id"].to_pylist()
    assert dataset.to_table(nearest=query)["id"].to_pylist() == expected
    assert expected[0] == 17
