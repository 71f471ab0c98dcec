"""`replace_where`: deleted and added rows in one version, refused rows, and lost races."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import CommitConflictError, DataMismatchError, InvalidInputError, UnsupportedError

ROWS = pa.table({"k": [1, 2, 1, None], "v": ["a", "b", "c", "d"]})


@pytest.fixture(params=[False, True])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path / "t", enable_stable_row_ids=request.param)


def files(ds: ld.LanceDataset) -> set[str]:
    return {path.name for path in (Path(ds.uri) / "data").iterdir()}


def test_matching_rows_are_replaced_in_one_version(table: ld.LanceDataset) -> None:
    result = table.replace_where("k = 1", [{"k": 1, "v": "x"}], commit_message="again")
    assert result == {"num_deleted_rows": 2, "num_inserted_rows": 1, "version": 2}
    assert table.to_table().to_pylist() == [{"k": 2, "v": "b"}, {"k": None, "v": "d"}, {"k": 1, "v": "x"}]
    assert ld.dataset(table.uri).versions()[-1]["version"] == 2
    transaction = table.read_transaction(2)
    assert transaction is not None
    assert type(transaction.operation).__name__ == "Update"


@pytest.mark.parametrize(
    "condition", ["k = 1", ("k = ?", [1]), ("k = $n", {"n": 1}), pc.field("k") == 1, "lower(v) >= 'a' AND k = 1"]
)
def test_conditions_have_the_forms_of_delete(table: ld.LanceDataset, condition: Any) -> None:
    assert table.replace_where(condition, [{"k": 1, "v": "z"}])["num_deleted_rows"] == 2


def test_no_rows_only_delete(table: ld.LanceDataset) -> None:
    result = table.replace_where("k = 1", table.schema.empty_table())
    assert (result["num_deleted_rows"], result["num_inserted_rows"]) == (2, 0)
    assert table.replace_where("true", iter([]), schema=table.schema)["num_deleted_rows"] == 2
    assert table.count_rows() == 0


@pytest.mark.parametrize(
    ("keys", "place", "found"), [([1, 2, 3], 1, "k = 2"), ([1, 1, None], 2, "k = NULL"), ([0], 0, "k = 0")]
)
def test_the_first_other_row_is_named_and_nothing_is_kept(
    table: ld.LanceDataset, keys: list[int], place: int, found: str
) -> None:
    before = files(table)
    with pytest.raises(DataMismatchError, match=f"row {place} of the new rows.*expected k = 1, found {found}"):
        table.replace_where("k = 1", {"k": keys})
    assert files(table) == before
    assert ld.dataset(table.uri).version == 1


def test_a_row_of_a_later_file_is_named_by_its_place_in_the_data(tmp_path: Path) -> None:
    table = ld.write_dataset({"k": [1]}, tmp_path / "t", data_storage_version="2.1")

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 3 << 20, 1 << 20):
            keys = pa.array(range(start, start + (1 << 20)))
            yield pa.record_batch({"k": pc.if_else(pc.equal(keys, 2_500_000), 0, 1)})

    with pytest.raises(DataMismatchError, match="row 2500000 of the new rows"):
        table.replace_where("k = 1", batches(), schema=pa.schema({"k": pa.int64()}))


@pytest.mark.parametrize(
    ("condition", "error", "text"),
    [
        ("k IN (SELECT 1)", UnsupportedError, "a subquery"),
        ("_rowid = 1", UnsupportedError, "column _rowid"),
        (ld.query.MatchQuery("a", "v"), UnsupportedError, "a full-text query"),
        (None, InvalidInputError, "missing condition"),
        ("k +", InvalidInputError, "bad filter"),
        ("nope = 1", InvalidInputError, "nope"),
        (7, InvalidInputError, "bad filter"),
    ],
)
def test_other_conditions_are_refused_before_the_data_is_read(
    table: ld.LanceDataset, condition: Any, error: type[Exception], text: str
) -> None:
    def unread() -> Iterator[pa.RecordBatch]:
        raise AssertionError
        yield

    with pytest.raises(error, match=text):
        table.replace_where(condition, unread(), schema=ROWS.schema)


def test_data_of_other_columns_is_refused(table: ld.LanceDataset) -> None:
    with pytest.raises(DataMismatchError):
        table.replace_where("k = 1", {"k": [1], "other": [1]})
    assert ld.dataset(table.uri).version == 1


def test_a_race_over_the_same_rows_finds_them_again(table: ld.LanceDataset) -> None:
    other = ld.dataset(table.uri)
    other.replace_where("k = 1", {"k": [1, 1, 1]})
    result = table.replace_where("k = 1", {"k": [1]})
    assert result == {"num_deleted_rows": 3, "num_inserted_rows": 1, "version": 3}
    assert table.count_rows("k = 1") == 1


def test_without_retries_a_race_is_a_conflict_and_leaves_no_files(table: ld.LanceDataset) -> None:
    ld.dataset(table.uri).update({"v": "'x'"}, where="k = 1")
    before = files(table)
    with pytest.raises(CommitConflictError):
        table.replace_where("k = 1", {"k": [1]}, conflict_retries=0)
    assert files(table) == before


def test_changes_of_other_rows_merge(table: ld.LanceDataset) -> None:
    ld.dataset(table.uri).delete("k = 2")
    assert table.replace_where("k = 1", {"k": [1]})["version"] == 3
    assert table.to_table().column("k").to_pylist() == [None, 1]


def test_a_transaction_of_several_tables_contains_it(tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    with ld.transaction(tmp_path) as transaction:
        ds = transaction["t"]
        ds.replace_where("k = 1", {"k": [1], "v": ["x"]})
        ds.replace_where("k = 1", {"k": [1, 1], "v": ["y", "z"]})
    after = ld.dataset(tmp_path / "t.lance")
    assert after.version == 2
    assert after.to_table().column("v").to_pylist() == ["b", "d", "y", "z"]


KEYS = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=12)


@settings(max_examples=25, deadline=None)
@given(before=KEYS, after=KEYS, key=st.integers(0, 3), stable=st.booleans())
def test_a_replacement_equals_its_model(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[int | None],
    after: list[int | None],
    key: int,
    stable: bool,
) -> None:
    schema = pa.schema({"k": pa.int64()})
    ds = ld.write_dataset(
        pa.table({"k": before}, schema),
        tmp_path_factory.mktemp("m") / "t",
        enable_stable_row_ids=stable,
        max_rows_per_file=5,
    )
    expected = [k for k in before if k is None or k < key]
    if all(k is not None and k >= key for k in after):
        expected += after
        ds.replace_where(f"k >= {key}", pa.table({"k": after}, schema))
    else:
        expected = before
        with pytest.raises(DataMismatchError):
            ds.replace_where(f"k >= {key}", pa.table({"k": after}, schema))
    assert ld.dataset(ds.uri).to_table().column("k").to_pylist() == expected


def test_an_empty_list_only_deletes(table: ld.LanceDataset) -> None:
    assert table.replace_where("k = 1", [])["num_deleted_rows"] == 2
    assert table.to_table()["v"].to_pylist() == ["b", "d"]
