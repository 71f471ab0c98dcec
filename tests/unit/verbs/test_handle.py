from __future__ import annotations

import gc
import pickle
from pathlib import Path
from weakref import ref

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

OPTIONS = {"fsync": "false"}


@pytest.fixture
def ds(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t", storage_options=OPTIONS)


def test_a_change_moves_only_the_handle_of_its_dataset(ds: ld.LanceDataset) -> None:
    other = ld.dataset(ds.uri)
    handle = ds.handle
    ds.delete("id = 1")
    assert ds.handle is handle
    assert (handle.snapshot.version, other.handle.snapshot.version) == (2, 1)
    assert handle.table.snapshot is handle.snapshot


def test_pyarrow_operations_follow_the_handle(ds: ld.LanceDataset) -> None:
    ds.add_columns({"twice": "id * 2"})
    expected = pa.table({"id": [1, 2, 3], "twice": [2, 4, 6]})
    assert pads.Scanner.from_dataset(pads.UnionDataset(expected.schema, [ds])).to_table() == expected


def test_a_change_starts_from_the_version_of_the_handle(ds: ld.LanceDataset) -> None:
    assert ds.handle.base is ds.handle.snapshot


def test_a_filtered_dataset_cannot_be_changed(ds: ld.LanceDataset) -> None:
    part = ds.filter("id > 1")
    with pytest.raises(InvalidInputError, match="filtered dataset cannot be changed"):
        _ = part.handle.base
    part.checkout_latest()
    assert part.to_table() == pa.table({"id": [2, 3]})


def test_a_pickled_dataset_keeps_uri_version_and_filter(ds: ld.LanceDataset) -> None:
    part = ds.filter("id > 1")
    ds.delete("id = 3")
    copy = pickle.loads(pickle.dumps(part))
    assert (copy.uri, copy.version, copy.count_rows()) == (ds.uri, 1, 2)


def test_a_dataset_is_open_at_a_version_that_was_opened_before(ds: ld.LanceDataset) -> None:
    again = ld.LanceDataset(ds.uri, table=ds.handle.table)
    again.delete("id = 1")
    assert (again.version, ds.version) == (2, 1)


def test_cached_data_is_freed_with_its_dataset(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"id": [1]}), tmp_path / "t", storage_options=OPTIONS)
    table.delete("id = 2")
    read = ref(table.handle.table)
    gc.disable()
    try:
        del table
        assert read() is None
    finally:
        gc.enable()
