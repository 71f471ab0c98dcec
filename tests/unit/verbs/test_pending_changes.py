from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.pending_changes import PendingChanges


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    rows = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    return ld.write_dataset(rows, tmp_path / "t.lance", storage_options={"fsync": "false"})


def collecting(pending: PendingChanges) -> ld.LanceDataset:
    return ld.LanceDataset(pending.base.uri, table=TableScan(pending.collecting()))


def test_a_dataset_of_pending_changes_does_not_commit(table: ld.LanceDataset) -> None:
    pending = PendingChanges(table.handle.base)
    draft = collecting(pending)
    draft.add_columns({"c": "a * 2"})
    draft.drop_columns(["b"])
    draft.update_metadata({"key": "value"})
    assert draft.to_table().to_pydict() == {"a": [1, 2, 3], "c": [2, 4, 6]}
    assert table.latest_version == 1
    after = pending.commit({"by": "test"})
    assert (after.version, after.schema.names, dict(after.metadata)) == (2, ["a", "c"], {"key": "value"})
    transaction = after.transaction()
    assert transaction is not None
    assert (transaction.operation, dict(transaction.transaction_properties)) == ("Merge", {"by": "test"})
    assert ld.dataset(table.uri).to_table().to_pydict() == {"a": [1, 2, 3], "c": [2, 4, 6]}


def test_changes_that_cannot_be_committed_together_are_refused(table: ld.LanceDataset) -> None:
    pending = PendingChanges(table.handle.base)
    draft = collecting(pending)
    for change in (
        lambda: draft.update_config({"k": "v"}),
        lambda: draft.update_metadata({"k": "v"}, replace=True),
        lambda: draft.update_schema_metadata({"k": "v"}),
        lambda: draft.create_scalar_index("a", "BTREE"),
        lambda: draft.restore(),
    ):
        with pytest.raises(UnsupportedError, match="cannot be combined with other changes in a transaction"):
            change()
    assert pending.current is pending.base
    assert pending.commit().version == table.latest_version == 1


def test_a_change_starts_from_the_last_change(table: ld.LanceDataset) -> None:
    pending = PendingChanges(table.handle.base)
    first, second = collecting(pending), collecting(pending)
    first.drop_columns(["b"])
    with pytest.raises(InvalidInputError, match="another dataset has changed this table"):
        second.drop_columns(["a"])
    assert pending.commit().schema.names == ["a"]


def test_discarded_changes_leave_no_files(table: ld.LanceDataset) -> None:
    before = sorted(Path(table.uri).rglob("*"))
    pending = PendingChanges(table.handle.base)
    draft = collecting(pending)
    draft.add_columns({"c": "a * 2"})
    draft.add_columns({"d": "c * 2"})
    draft.drop_columns(["c"])
    assert len(sorted(Path(table.uri).rglob("*"))) == len(before) + 2
    pending.discard()
    assert sorted(Path(table.uri).rglob("*")) == before
