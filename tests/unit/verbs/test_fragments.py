from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.file import LanceFileWriter
from lance_duck.fragment import DataFile, DeletionFile, FragmentMetadata, LanceFragment, write_fragments

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, place, max_rows_per_file=2, storage_options=hasty)


def test_fragments_can_be_written_before_the_table_exists(place: str) -> None:
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


def test_fragments_for_a_table_follow_its_schema(table: ld.LanceDataset) -> None:
    (made,) = write_fragments(pa.table({"b": ["w"]}), table.uri)  # type: ignore[misc]
    assert made.files[0].fields == [1]
    with pytest.raises(InvalidInputError, match="not in the table"):
        write_fragments(pa.table({"z": [1]}), table)
    with pytest.raises(InvalidInputError, match="unknown mode"):
        write_fragments(ROWS, table, mode="upsert")


def test_create_writes_all_rows_to_one_fragment(table: ld.LanceDataset, tmp_path: Path) -> None:
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
def test_columns_are_added_to_each_fragment(table: ld.LanceDataset, values: object, options: dict[str, object]) -> None:
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
        (pa.table({"a": [1], "z": [1]}), "a", "column 'z' does not exist"),
        (pa.table({"a": [1]}), "a", "these columns cannot be updated"),
        (pa.table({"a": [1], "_rowid": pa.array([1], pa.uint64())}), "a", "these columns cannot be updated"),
        (pa.table({"a": ["1"], "b": ["x"]}), "a", "different types"),
        (pa.table({"a": [1], "b": [[1]]}), "a", "the wrong type"),
    ],
)
def test_invalid_updates_are_rejected(table: ld.LanceDataset, data: pa.Table, left_on: str, message: str) -> None:
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


def test_a_session_can_take_rows_repeatedly(table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    session = fragment.open_session(["b"], with_row_address=True)
    assert session.take([1, 0, 1]).to_pydict() == {"b": ["y", "x", "y"], "_rowaddr": [1, 0, 1]}
    assert fragment.open_session().take([0]) == ROWS.slice(0, 1)
    with pytest.raises(InvalidInputError, match="row position"):
        session.take([2])
    with pytest.raises(InvalidInputError, match="'z'"):
        fragment.open_session(["z"])


def test_rows_are_deleted_by_offset(table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    changed = fragment.delete_rows([1, 1])
    assert changed is not None
    assert (changed.num_rows, changed.num_deletions) == (1, 1)
    operation = ld.LanceOperation.Delete([changed], [], "by offset")
    assert ld.LanceDataset.commit(table, operation, read_version=1).to_table()["a"].to_pylist() == [1, 3]
    assert fragment.delete_rows(range(2)) is None
    with pytest.raises(InvalidInputError, match="0 to 1"):
        fragment.delete_rows([2])


def test_a_single_fragment_can_be_validated(table: ld.LanceDataset) -> None:
    whole, broken = table.get_fragments()
    path = Path(table.uri) / "data" / broken.metadata.files[0].path
    path.write_bytes(path.read_bytes()[:-8])
    whole.validate()
    with pytest.raises(CorruptError, match="1 problem"):
        ld.dataset(table.uri).get_fragments()[1].validate()


def written_beside(table: ld.LanceDataset, name: str, rows: pa.Table) -> str:
    with LanceFileWriter(Path(table.uri) / "data" / name) as writer:
        writer.write_batch(rows)
    return name


def test_a_file_in_the_folder_of_a_table_becomes_a_fragment(place: str, hasty: dict[str, str]) -> None:
    rows = pa.table({"a": [1], "s": [{"x": 1, "y": "p"}], "b": ["x"]})
    table = ld.write_dataset(rows, place, storage_options=hasty)
    turned = pa.struct([("y", pa.string()), ("x", pa.int64())])
    more = pa.table({"b": ["w", "v"], "s": pa.array([{"y": "q", "x": 5}, None], turned)})
    name = written_beside(table, "new.lance", more)
    made = LanceFragment.create_from_file(name, table, 0)
    assert (made.physical_rows, made.files[0].fields, made.files[0].column_indices) == (2, [4, 3, 2], [0, 1, 2])
    assert made.files == [DataFile.create(table, name)]
    after = ld.LanceDataset.commit(table, ld.LanceOperation.Append([made]), read_version=1)
    assert after.to_table().to_pylist()[1:] == [
        {"a": None, "s": {"x": 5, "y": "q"}, "b": "w"},
        {"a": None, "s": None, "b": "v"},
    ]


def test_files_that_do_not_match_the_table_are_rejected(place: str, hasty: dict[str, str]) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("s", pa.struct([("x", pa.int32())]))])
    table = ld.write_dataset(schema.empty_table(), place, storage_options=hasty)
    for rows, message in [
        (pa.table({"z": [1]}), "'z'"),
        (pa.table({"a": ["text"]}), "'a' has another type: expected int64, found string"),
        (pa.table({"a": [1], "s": [{"y": 1}]}), r"'s\.y'"),
        (pa.table({"s": pa.array([{"x": 1}], schema.field("s").type)}), "a are missing"),
    ]:
        name = written_beside(table, "other.lance", rows)
        with pytest.raises(InvalidInputError, match=message):
            LanceFragment.create_from_file(name, ld.dataset(place), 0)
    with pytest.raises(NotFoundError):
        DataFile.create(table, "nowhere.lance")


def test_deletion_files_round_trip_through_json() -> None:
    file = DeletionFile(3, 9, "bitmap", 2, base_id=1)
    assert file.asdict() == {"read_version": 3, "id": 9, "file_type": "bitmap", "num_deleted_rows": 2, "base_id": 1}
    assert DeletionFile.from_json(file.json()) == file
    assert (file.path(5), file.path(5, "s3://b/t/")) == ("_deletions/5-3-9.bin", "s3://b/t/_deletions/5-3-9.bin")
    with pytest.raises(InvalidInputError, match="not a deletion file"):
        DeletionFile.from_json('{"id": 1}')


@pytest.mark.parametrize("path", ["../../outside.lance", "/outside.lance", "a\0b"])
def test_a_commit_of_a_file_outside_the_table_is_rejected(tmp_path: Path, path: str) -> None:
    dataset = ld.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    (fragment,) = dataset.get_fragments()
    files = [replace(fragment.metadata.files[0], path=path)]
    overlay = ld.LanceOperation.DataOverlayFile(files[0], [0])
    for operation in (
        ld.LanceOperation.Append([replace(fragment.metadata, files=files)]),
        ld.LanceOperation.DataOverlay([ld.LanceOperation.DataOverlayGroup(0, [overlay])]),
    ):
        with pytest.raises(ld.InvalidInputError, match="the path is outside the table's folder"):
            ld.LanceDataset.commit(dataset.uri, operation, read_version=1)
    assert ld.dataset(dataset.uri).to_table().num_rows == 2
