"""Small fragments that are read together return the same rows as one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.nested_random import types, values

import lance_duck as ld
from lance_duck.scan.nearest import exact
from lance_duck.scan.read import tasks

HASTY = {"fsync": "false"}
HIDDEN = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


def ask(ds: ld.LanceDataset, name: str) -> list[tuple[str, Any]]:
    """What scans of a version give: rows, and how batches are cut."""
    hidden = HIDDEN if ds.has_stable_row_ids else HIDDEN[:3]
    questions: dict[str, Callable[[], Any]] = {
        "all": ds.to_table,
        "batches": lambda: [batch.num_rows for batch in ds.to_batches()],
        "one thread": lambda: ds.to_table(use_threads=False),
        "hidden": lambda: ds.to_table(columns=["id", *hidden]),
        "filter": lambda: ds.to_table(filter="id % 3 = 1", with_row_id=True),
        "by offset": lambda: ds.to_table(columns=[name], filter="_rowoffset < 17 AND _rowoffset > 2"),
        "range": lambda: ds.to_table(offset=5, limit=21),
        "count": lambda: ds.count_rows("id > 4"),
        "index": lambda: ds.to_table(columns=["id", name, *hidden], filter="id % 2 = 0 AND id > 1", with_row_id=True),
        "index and offset": lambda: ds.to_table(columns=["id"], filter="id > 2 AND _rowoffset < 25"),
        "counted by index": lambda: ds.count_rows("id > 7"),
        "nearest": lambda: ds.search([3.0, 7.0], column="v", k=9),
        "nearest of some": lambda: ds.search([9.0, 1.0], column="v", k=9, filter="id % 4 != 1"),
        "deleted, too": lambda: ds.to_table(columns=["id"], with_row_id=True, include_deleted_rows=True),
    }
    return [(question, answer()) for question, answer in questions.items()]


def make(path: str, type_: pa.DataType, sizes: list[int], seed: int, version: str, stable: bool) -> ld.LanceDataset:
    """A table with a fragment of each size. Column x has nulls in some of them. Some fragments have no index."""
    rng = np.random.default_rng(seed)
    ds, start = None, 0
    for size in sizes:
        ids = pa.array(range(start, start + size))
        column = values(type_, rng, size, rng.choice([0.0, 0.3, 1.0]))
        numbers = pa.array(rng.integers(0, 9, 2 * size).astype(np.float32))
        data = pa.table({"id": ids, "x": column, "v": pa.FixedSizeListArray.from_arrays(numbers, 2)})
        options: dict[str, Any] = {"data_storage_version": version, "enable_stable_row_ids": stable}
        mode = "append" if ds is not None else "create"
        ds = ld.write_dataset(data, path, mode=mode, storage_options=HASTY, **options)
        if start == 0:
            ds.create_scalar_index("id", "BTREE")
        start += size
    assert ds is not None
    return ds


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fragments_read_together_return_the_same_rows_as_one_by_one(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    maps = version == "2.2"
    type_ = data.draw(types(0 if version == "2.0" else 2, maps=maps).filter(lambda t: not pa.types.is_null(t)))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=14))
    seed, stable = data.draw(st.integers(0, 99)), data.draw(st.booleans())
    path = str(tmp_path_factory.mktemp("joined") / "t.lance")
    ds = make(path, type_, sizes, seed, version, stable)
    change = data.draw(st.sampled_from(["none", "delete", "add a column", "both"]))
    if change in ("delete", "both"):
        ds.delete(f"id % 4 = {seed % 4}")
    if change in ("add a column", "both"):
        ds.add_columns({"twice": "2 * id"})
    together = ask(ld.dataset(path), "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "may_join", lambda _: False)
        patch.setattr(exact, "may_join_columns", lambda _: False)
        apart = ask(ld.dataset(path), "x")
    assert [question for question, _ in together] == [question for question, _ in apart]
    for (question, ours), (_, plain) in zip(together, apart, strict=True):
        assert ours == plain, question
