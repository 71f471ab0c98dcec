"""Index coverage after each verb: only indexes over columns changed in place lose a fragment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from unit.index.plain import PlainKind
from unit.maintenance.indexed import check, covers, with_index, write

import lance_duck as ld
from lance_duck.errors import ReferencedError
from lance_duck.index import registry
from lance_duck.verbs.public.lance_operation import LanceOperation

Change = Callable[[ld.LanceDataset], object]


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ld.LanceDataset:
    """Three fragments of ten rows, with address-based indexes over x and y."""
    kind = PlainKind(rows_by="address")
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, registry.KindEntry.of(kind)))
    table = write(tmp_path / "t.lance", 3, stable=request.param)
    return with_index(with_index(table, kind, column="x"), kind, column="y")


def merge_columns(table: ld.LanceDataset) -> None:
    source = pa.table({"key": [3, 25], "x": [6, 6]})
    table.merge_insert("key").when_matched_update_all().write_mode("rewrite_columns").execute(source)


def update_columns(table: ld.LanceDataset) -> None:
    (made, fields) = table.get_fragment(1).update_columns(pa.table({"key": [12], "x": [0]}), "key")  # type: ignore[misc]
    operation = LanceOperation.Update(updated_fragments=[made], fields_modified=fields, update_mode="rewrite_columns")
    ld.LanceDataset.commit(table.uri, operation, read_version=table.version)


def drop_and_add_x(table: ld.LanceDataset) -> None:
    table.drop_columns(["x"])
    table.add_columns({"x": "y + 1"})


@pytest.mark.parametrize(
    ("change", "x", "y"),
    [
        (merge_columns, [[1]], [[0, 1, 2]]),
        (update_columns, [[0, 2]], [[0, 1, 2]]),
        (drop_and_add_x, [], [[0, 1, 2]]),
        (lambda t: t.add_columns({"z": "x + 1"}), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.add_columns(pa.schema([("z", pa.int32())])), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.merge(pa.table({"key": [1], "z": [1]}), "key"), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.alter_columns({"path": "x", "name": "x2"}), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.drop_columns(["key"]), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.update({"x": "x + 1"}, where="key = 3"), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.delete("key = 3"), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.delete("key < 10"), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: t.update_config({"a": "b"}), [[0, 1, 2]], [[0, 1, 2]]),
        (lambda t: ld.write_dataset(t.to_table(), t.uri, mode="overwrite"), [], []),
    ],
)
def test_in_place_changes_reduce_coverage_of_the_changed_columns(
    dataset: ld.LanceDataset, change: Change, x: list[list[int]], y: list[list[int]]
) -> None:
    change(dataset)
    after = ld.dataset(dataset.uri)
    assert (covers(after, "x_idx"), covers(after, "y_idx")) == (x, y)
    for column in {"x", "y"} & set(after.schema.names):
        check(after, column)


def test_a_column_must_lose_its_index_before_a_cast(dataset: ld.LanceDataset) -> None:
    version = dataset.version
    with pytest.raises(ReferencedError, match=r"an indexed column cannot be cast.*x_idx; drop the index first"):
        dataset.alter_columns({"path": "x", "data_type": pa.int32()})
    assert dataset.version == version
    dataset.alter_columns({"path": "key", "data_type": pa.int32()})
    assert dataset.version == version + 1
