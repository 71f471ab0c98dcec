from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from unit.commit.samples import OPERATIONS, index

import lance_duck as ld
from lance_duck.commit import Clone, Rewrite, RewrittenIndex, Update, key_filter, operation_from_proto
from lance_duck.commit.committer import new_transaction
from lance_duck.commit.operations import CreateIndex, Operation
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    RetryableError,
    UnsupportedError,
)
from lance_duck.verbs.public.lance_operation import Index, LanceOperation, Transaction
from lance_duck.verbs.public.operation_convert import from_transaction, to_operation
from lance_duck.wire.transaction import transaction_from_proto

ROWS = pa.table({"a": [1, 2]})
MORE: dict[str, Operation] = {
    "Update of keys": Update(inserted_rows=key_filter([0], [pa.array([1])])),
    "CreateIndex of all": CreateIndex([index("i", 0, covers=None, created_at=1500, base_id=2, covering_fields=[1])]),
    "Rewrite of an index": Rewrite((), (RewrittenIndex(UUID(int=1), UUID(int=2), "/t", b"details", 1),)),
    "Clone": Clone(True, None, 3, "/other", "to"),
    "Update of all": Update((3,), (), (), (1,), (2,), "rewrite_columns", None, {1: b"bits"}),
}


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path / "t")


def append(table: ld.LanceDataset) -> LanceOperation.Append:
    """Add the rows of the first fragment once more."""
    return LanceOperation.Append([table.get_fragments()[0].metadata])


SHOWN = {name: operation for name, operation in {**OPERATIONS, **MORE}.items() if name != "Overwrite with k1"}


@pytest.mark.parametrize("operation", SHOWN.values(), ids=SHOWN)
def test_operations_round_trip_through_their_public_form(operation: Operation) -> None:
    proto = new_transaction(1, operation, {"k": "v"})
    shown = from_transaction(transaction_from_proto(proto))
    assert type(shown.operation).__name__ == operation.name
    assert (shown.read_version, shown.uuid, shown.transaction_properties) == (1, proto.uuid, {"k": "v"})
    taken = new_transaction(1, to_operation(shown.operation, None), None)
    assert operation_from_proto(taken, "here") == operation_from_proto(proto, "here")


def test_an_operation_creates_a_table_and_changes_it(table: ld.LanceDataset, tmp_path: Path) -> None:
    fragments = [table.get_fragments()[0].metadata]
    uri = tmp_path / "t"
    replaced = ld.LanceDataset.commit(uri, LanceOperation.Overwrite(ROWS.schema, fragments), commit_message="why")
    assert (replaced.version, replaced.uri, replaced.count_rows()) == (2, str(uri), 2)
    said = replaced.read_transaction(2)
    assert said is not None
    assert (type(said.operation), said.commit_message) == (LanceOperation.Overwrite, "why")
    after = ld.LanceDataset.commit(replaced, append(replaced), read_version=2)
    assert (after.version, after.to_table()["a"].to_pylist(), replaced.version) == (3, [1, 2, 1, 2], 2)


def test_a_table_is_created_with_the_requested_settings(table: ld.LanceDataset, tmp_path: Path) -> None:
    made = ld.LanceDataset.commit(
        tmp_path / "new",
        LanceOperation.Overwrite(ROWS.schema, []),
        enable_stable_row_ids=True,
        enable_v2_manifest_paths=False,
        transaction_properties={"k": "v"},
    )
    assert (made.has_stable_row_ids, made.count_rows(), made.schema) == (True, 0, ROWS.schema)
    assert (tmp_path / "new" / "_versions" / "1.manifest").exists()


def test_columns_of_an_arrow_schema_are_matched_by_name(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"a": [1], "b": [2]}), tmp_path / "t")
    only_b = pa.schema([("b", pa.int64())])
    after = ld.LanceDataset.commit(table, LanceOperation.Project(only_b), read_version=1)
    assert (after.to_table().to_pydict(), after.lance_schema.fields()[0].id()) == ({"b": [2]}, 1)


def test_a_transaction_is_committed_once(table: ld.LanceDataset) -> None:
    transaction = Transaction(1, append(table), transaction_properties={"k": "v"})
    first = ld.LanceDataset.commit(table, transaction)
    again = ld.LanceDataset.commit(table, transaction)
    assert (first.version, again.version, again.latest_version) == (2, 2, 2)
    assert first.read_transaction(2) == transaction or first.read_transaction(2).uuid == transaction.uuid


def test_appends_are_committed_together(table: ld.LanceDataset) -> None:
    others = [Transaction(1, append(table), transaction_properties={name: "1"}) for name in "xy"]
    found = ld.LanceDataset.commit_batch(table, others)
    assert (found["dataset"].version, found["dataset"].count_rows()) == (2, 6)
    assert found["merged"].transaction_properties == {"x": "1", "y": "1"}
    with pytest.raises(UnsupportedError, match="found Restore"):
        ld.LanceDataset.commit_batch(table, [Transaction(1, LanceOperation.Restore(1))])
    with pytest.raises(InvalidInputError, match="no transactions"):
        ld.LanceDataset.commit_batch(table, [])


def test_without_retries_a_commit_must_follow_the_version_it_read(table: ld.LanceDataset) -> None:
    ld.LanceDataset.commit(table, append(table), read_version=1)
    with pytest.raises(RetryableError, match="may only follow version 1"):
        ld.LanceDataset.commit(table, append(table), read_version=1, max_retries=0)


def test_invalid_arguments_are_rejected(table: ld.LanceDataset, tmp_path: Path) -> None:
    commit: Any = ld.LanceDataset.commit
    one = append(table)
    with pytest.raises(InvalidInputError, match="no read_version"):
        commit(table, one)
    with pytest.raises(InvalidInputError, match="commit_lock: expected a function, found int"):
        commit(table, one, 1, 3)
    with pytest.raises(InvalidInputError, match="unknown argument 'odd'"):
        commit(table, one, 1, odd=1)
    with pytest.raises(InvalidInputError, match="found int"):
        commit(5, one, 1)
    with pytest.raises(InvalidInputError, match="commit_timeout"):
        commit(table, one, 1, commit_timeout=timedelta(0))
    with pytest.raises(InvalidInputError, match="expected one of LanceOperation, found str"):
        commit(table, "Append", 1)
    with pytest.raises(InvalidInputError, match="expected FragmentMetadata, found int"):
        commit(table, LanceOperation.Append([1]), 1)
    with pytest.raises(InvalidInputError, match="UpdateConfig has an invalid field"):
        commit(table, LanceOperation.UpdateConfig(field_metadata_updates=[{"f": "1"}]), 1)
    with pytest.raises(InvalidInputError, match="CreateIndex has an invalid field"):
        commit(table, LanceOperation.CreateIndex([Index(str(uuid4()), "i", [0], 1, {"x"}, 0)], []), 1)
    with pytest.raises(UnsupportedError, match="its format is newer"):
        commit(table, LanceOperation.BaseOperation(), 1)
    with pytest.raises(InvalidInputError, match="commit_message cannot be combined with a Transaction"):
        commit(table, Transaction(1, one), commit_message="no")
    with pytest.raises(NotFoundError, match="Append needs an existing table"):
        commit(tmp_path / "none", one, 1)
    with pytest.raises(NotFoundError, match="no version 9"):
        commit(table, one, 9)
    with pytest.raises(InvalidInputError, match="uuid of an index"):
        commit(table, LanceOperation.CreateIndex([Index("x", "i", [0], 1, {0}, 0)], []), 1)
    assert ld.dataset(tmp_path / "t").version == 1


def test_a_table_is_not_created_twice(tmp_path: Path) -> None:
    made = LanceOperation.Overwrite(ROWS.schema, [])
    ld.LanceDataset.commit(tmp_path / "t", made)
    assert ld.LanceDataset.commit(tmp_path / "t", made).version == 2
    with pytest.raises(AlreadyExistsError):
        ld.write_dataset(ROWS, tmp_path / "t")


def test_the_commit_lock_is_held_while_each_version_appears(tmp_path: Path) -> None:
    uri, steps = tmp_path / "locked.lance", []
    rows = pa.table({"x": [1, 2]})

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        steps.append((version, "before", (uri / "_versions").exists() and len(ld.dataset(uri).versions())))
        yield
        steps.append((version, "after", len(ld.dataset(uri).versions())))

    table = ld.write_dataset(rows, uri, commit_lock=lock)
    table.delete("x = 1")
    opened = ld.dataset(uri, commit_lock=lock)
    opened.insert(rows)
    ld.write_dataset(rows, ld.dataset(uri), mode="append", commit_lock=lock)
    ld.LanceDataset.commit(opened, LanceOperation.Append([]), read_version=4)
    ld.LanceDataset.commit(uri, LanceOperation.Append([]), read_version=5, commit_lock=lock)
    assert steps == [step for n in range(1, 7) for step in ((n, "before", n - 1), (n, "after", n))]


def test_a_refused_commit_lock_leaves_the_table_unchanged(tmp_path: Path) -> None:
    uri = tmp_path / "locked.lance"
    rows = pa.table({"x": [1, 2]})

    def lock(version: int) -> Any:
        raise ld.CommitConflictError

    with pytest.raises(ld.CommitConflictError, match="another writer was first"):
        ld.write_dataset(rows, uri, commit_lock=lock)
    assert not uri.exists()
    ld.write_dataset(rows, uri)
    with pytest.raises(ld.CommitConflictError):
        ld.dataset(uri, commit_lock=lock).delete("x = 1")
    assert (ld.dataset(uri).version, ld.dataset(uri).count_rows()) == (1, 2)
