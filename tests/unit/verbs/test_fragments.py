from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.fragment import FragmentMetadata, LanceFragment, write_fragments

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, place, max_rows_per_file=2, storage_options=hasty)


def test_fragments_are_written_first_and_make_a_table_later(place: str) -> None:
    written = write_fragments(ROWS, place, max_rows_per_file=2)
    assert [(f.id, f.physical_rows) for f in written] == [(0, 2), (0, 1)]
    passed_on = [FragmentMetadata.from_json(json.dumps(f.to_json())) for f in pickle.loads(pickle.dumps(written))]
    made = ld.LanceDataset.commit(place, ld.LanceOperation.Overwrite(ROWS.schema, passed_on))
    assert (made.version, made.to_table(), made.fragment_ids()) == (1, ROWS, [0, 1])


@pytest.mark.parametrize("mode", ["append", "overwrite", "create"])
def test_a_transaction_of_written_fragments_is_committed(table: ld.LanceDataset, mode: str) -> None:
    transaction = write_fragments(ROWS, table, mode=mode, return_transaction=True)
    made = ld.LanceDataset.commit(table, transaction)  # type: ignore[arg-type]
    assert made.count_rows() == (6 if mode == "append" else 3)


def test_fragments_for_a_table_have_its_columns(table: ld.LanceDataset) -> None:
    (made,) = write_fragments(pa.table({"b": ["w"]}), table.uri)  # type: ignore[misc]
    assert made.files[0].fields == [1]
    with pytest.raises(InvalidInputError, match="not in the table"):
        write_fragments(pa.table({"z": [1]}), table)
    with pytest.raises(InvalidInputError, match="unknown mode"):
        write_fragments(ROWS, table, mode="upsert")


def test_one_fragment_is_made_of_all_rows(table: ld.LanceDataset, tmp_path: Path) -> None:
    made = LanceFragment.create(tmp_path / "other", ROWS, fragment_id=7)
    assert (made.id, made.physical_rows) == (7, 3)
    with pytest.raises(InvalidInputError, match="one fragment"):
        LanceFragment.create(table.uri, ROWS.slice(0, 0))


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({"n": "a * 2"}, {}),
        (
            lambda b: pa.record_batch({"n": pa.array([2 * i.as_py() for i in b["a"]])}),
            {"columns": ["a"], "batch_size": 1},
        ),
    ],
)
def test_columns_are_added_fragment_by_fragment(
    table: ld.LanceDataset, values: object, options: dict[str, object]
) -> None:
    made = [fragment.merge_columns(values, **options) for fragment in table.get_fragments()]  # type: ignore[arg-type]
    schema = made[0][1]
    operation = ld.LanceOperation.Merge([fragment for fragment, _ in made], schema)
    after = ld.LanceDataset.commit(table, operation, read_version=table.version)
    assert after.to_table(["a", "n"]).to_pydict() == {"a": [1, 2, 3], "n": [2, 4, 6]}
    assert schema.to_pyarrow().names == ["a", "b", "n"]
    assert table.to_table() == ROWS


def test_a_fragment_is_joined_and_fed_from_a_stream(table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    joined, schema = fragment.merge(pa.table({"k": [2], "n": ["two"]}), "a", "k")
    assert (joined.files[-1].fields, schema.names) == ([2], ["a", "b", "n"])
    streamed, _ = fragment.add_columns(pa.table({"n": [1, 2]}).to_reader())
    assert len(streamed.files) == 2
    with pytest.raises(InvalidInputError, match="than the table"):
        fragment.add_columns(pa.table({"n": [1, 2, 3]}))
    with pytest.raises(InvalidInputError, match="checkpoint"):
        fragment.merge_columns(ld.batch_udf(checkpoint_file=Path(table.uri) / "c")(lambda b: b))


def test_columns_are_updated_in_place(table: ld.LanceDataset) -> None:
    table.delete("a = 1")
    fragment = table.get_fragments()[0]
    made, fields, rows = fragment.update_columns(  # type: ignore[misc]
        pa.table({"k": [2, 9], "b": ["new", "none"]}), "a", "k", with_offsets=True
    )
    assert (fields, [f.fields for f in made.files]) == ([1], [[0, -2], [1]])
    operation = ld.LanceOperation.Update(
        updated_fragments=[made],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={0: rows},
    )
    after = ld.LanceDataset.commit(table, operation, read_version=table.version)
    assert after.to_table().to_pydict() == {"a": [2, 3], "b": ["new", "z"]}


@pytest.mark.parametrize(
    ("data", "left_on", "message"),
    [
        (pa.table({"a": [1], "z": [1]}), "a", "no column 'z'"),
        (pa.table({"a": [1]}), "a", "columns to update"),
        (pa.table({"a": [1], "_rowid": pa.array([1], pa.uint64())}), "a", "columns to update"),
        (pa.table({"a": ["1"], "b": ["x"]}), "a", "different types"),
        (pa.table({"a": [1], "b": [[1]]}), "a", "another type"),
    ],
)
def test_updates_that_make_no_sense_are_refused(
    table: ld.LanceDataset, data: pa.Table, left_on: str, message: str
) -> None:
    before = len(list((Path(table.uri) / "data").iterdir()))
    with pytest.raises(InvalidInputError, match=message):
        table.get_fragments()[0].update_columns(data, left_on)
    assert len(list((Path(table.uri) / "data").iterdir())) == before


def test_rows_of_one_fragment_are_deleted(table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    made = fragment.delete("a = 1")
    assert made is not None
    assert (made.num_deletions, made.num_rows) == (1, 1)
    assert fragment.delete("true") is None
    assert fragment.delete("a > 5") == fragment.metadata
    after = ld.LanceDataset.commit(table, ld.LanceOperation.Delete([made], [1], "a <> 2"), read_version=table.version)
    assert after.to_table()["a"].to_pylist() == [2]
