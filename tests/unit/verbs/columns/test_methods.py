from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, IncompatibleError, InvalidInputError

ROWS = pa.table(
    {
        "a": [1, 2, 3, 4, 5],
        "b": ["v", "w", None, "y", "z"],
        "s": [{"p": 1, "q": 1.5}, None, {"p": 3, "q": None}, {"p": 4, "q": 4.5}, {"p": 5, "q": 5.5}],
        "l": [[1, 2], [], None, [3], [4]],
    }
)


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, place, max_rows_per_file=2, storage_options=hasty)


def files(table: ld.LanceDataset) -> int:
    return len(list((Path(table.uri) / "data").iterdir()))


def column(table: ld.LanceDataset, name: str) -> list[Any]:
    found: list[Any] = table.to_table([name]).column(0).to_pylist()
    return found


def test_sql_expressions_write_only_the_new_columns(table: ld.LanceDataset) -> None:
    before = [f.data_files() for f in table.get_fragments()]
    table.add_columns({"n": "a * 2", "upper name": "upper(b)", "x": "s.p + len(l)"})
    assert table.schema.names == ["a", "b", "s", "l", "n", "upper name", "x"]
    assert column(table, "n") == [2, 4, 6, 8, 10]
    assert column(table, "upper name") == ["V", "W", None, "Y", "Z"]
    assert column(table, "x") == [3, None, None, 5, 6]
    assert [f.data_files()[:-1] for f in table.get_fragments()] == before
    assert table.to_table(["a", "b", "s", "l"]) == ROWS


def test_deleted_rows_are_not_evaluated(table: ld.LanceDataset) -> None:
    table.delete("a IN (1, 3, 4)")
    table.add_columns({"n": "10 / (a - 1)", "m": "b || '!'"})
    assert column(table, "n") == [10.0, 2.5]
    assert column(table, "m") == ["w!", "z!"]
    table.alter_columns({"path": "a", "data_type": pa.int8()})
    table.merge(pa.table({"a": pa.array([2, 5], pa.int8()), "k": ["two", "five"]}), "a")
    table.add_columns(pa.table({"r": [20, 50]}))
    assert table.to_table(["a", "k", "r"]).to_pylist() == [
        {"a": 2, "k": "two", "r": 20},
        {"a": 5, "k": "five", "r": 50},
    ]


def test_constant_nulls_write_no_files(table: ld.LanceDataset) -> None:
    before = files(table)
    table.add_columns({"n": "CAST(NULL AS INT)", "m": " null::varchar ", "k": "NULL"})
    table.add_columns([pa.field("o", pa.list_(pa.int8())), pa.field("s", pa.struct([("r", pa.int8())]))])
    assert files(table) == before
    assert [table.schema.field(n).type for n in "nmo"] == [pa.int32(), pa.string(), pa.list_(pa.int8())]
    assert table.schema.field("k").type in (pa.null(), pa.int32())  # a bare NULL: DuckDB from 2.0 on, and before
    assert column(table, "s")[0] == {"p": 1, "q": 1.5, "r": None}


def test_a_function_maps_batches_to_batches(table: ld.LanceDataset) -> None:
    seen: list[list[str]] = []

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.schema.names)
        assert batch.num_rows <= 1
        return pa.record_batch({"twice": pc.multiply(batch["a"], 2), "where": batch["_rowaddr"]})

    table.add_columns(double, read_columns=["_rowaddr", "a"], batch_size=1)
    assert column(table, "twice") == [2, 4, 6, 8, 10]
    assert column(table, "where") == [0, 1, 1 << 32, (1 << 32) + 1, 2 << 32]
    assert seen[0] == ["_rowaddr", "a"]


def test_a_function_may_return_frames(table: ld.LanceDataset) -> None:
    @ld.batch_udf()
    def triple(batch: pa.RecordBatch) -> pd.DataFrame:
        return pd.DataFrame({"t": [3 * i.as_py() for i in batch["a"]]})

    table.add_columns(triple, read_columns=["a"])
    table.add_columns(lambda batch: pa.table({"u": batch["a"]}))
    table.get_fragments()[0].merge_columns(lambda batch: pa.record_batch({"w": [1, 2]}), batch_size=2)
    assert column(table, "t") == [3, 6, 9, 12, 15]
    assert table.schema.metadata is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: 3, "returned no batch"),
        (lambda batch: pa.record_batch({"n": [1, 2, 3]}), "a different number of rows"),
        (lambda batch: pa.record_batch({"a": batch["a"]}), "already exists"),
        (
            ld.batch_udf(pa.schema({"n": pa.int8()}))(lambda batch: pa.record_batch({"n": batch["a"]})),
            "Output schema of function does not match",
        ),
    ],
)
def test_a_function_with_an_invalid_result_is_rejected(table: ld.LanceDataset, function: Any, message: str) -> None:
    before = files(table)
    with pytest.raises(InvalidInputError, match=message):
        table.add_columns(function)
    assert (table.version, table.latest_version, files(table)) == (1, 1, before)


def test_an_error_in_a_function_is_raised_and_leaves_nothing(table: ld.LanceDataset) -> None:
    before = files(table)

    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch["a"][0].as_py() == 5:
            raise ZeroDivisionError
        return pa.record_batch({"n": batch["a"]})

    with pytest.raises(ZeroDivisionError):
        table.add_columns(fail)
    assert (table.latest_version, files(table)) == (1, before)


def test_a_checkpoint_keeps_computed_batches(table: ld.LanceDataset, tmp_path: Path) -> None:
    checkpoint = tmp_path / "kept.sqlite"
    calls: list[int] = []

    def make(fails_at: int) -> ld.BatchUDF:
        @ld.batch_udf(pa.schema({"n": pa.int64()}), checkpoint_file=checkpoint)
        def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
            first = batch["a"][0].as_py()
            if first == fails_at:
                raise RuntimeError
            calls.append(first)
            return pa.record_batch({"n": pc.negate(batch["a"])})

        return compute

    with pytest.raises(RuntimeError):
        table.add_columns(make(fails_at=5), batch_size=1)
    table.add_columns(make(fails_at=0), batch_size=1)
    assert calls == [1, 2, 3, 4, 5]
    assert column(table, "n") == [-1, -2, -3, -4, -5]
    assert not checkpoint.exists()


def test_a_checkpoint_for_other_columns_is_rejected(table: ld.LanceDataset, tmp_path: Path) -> None:
    function = ld.batch_udf(checkpoint_file=tmp_path / "kept.sqlite")(lambda b: pa.record_batch({"n": b["a"]}))
    assert function.cache is not None
    other = table.get_fragment(0).data_files()[0]
    kept = {"path": other.path, "fields": [99], "column_indices": [0], "file_version": [2, 2]}
    function.cache.insert_fragment(0, json.dumps(kept | {"file_size": other.file_size_bytes, "base_id": None}))
    table.add_columns(function)
    assert column(table, "n") == [1, 2, 3, 4, 5]
    (tmp_path / "kept.sqlite").write_bytes(b"no database, but longer than a header" * 9)
    with pytest.raises(CorruptError, match="not a checkpoint"):
        ld.batch_udf(checkpoint_file=tmp_path / "kept.sqlite")(lambda b: b)


def test_a_stream_supplies_rows_in_order(table: ld.LanceDataset) -> None:
    batches = (pa.record_batch({"n": [i, i]}) for i in range(3))
    cut = iter([next(batches), next(batches), next(batches).slice(0, 1)])
    table.add_columns(cut, reader_schema=pa.schema({"n": pa.int64()}))
    assert column(table, "n") == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("rows", [0, 4, 6])
def test_a_stream_with_a_wrong_row_count_is_rejected(table: ld.LanceDataset, rows: int) -> None:
    before = files(table)
    with pytest.raises(InvalidInputError, match=r"row count of the table|more values than the table"):
        table.add_columns(pa.table({"n": pa.array(range(rows), pa.int64())}))
    assert (table.latest_version, files(table)) == (1, before)


def test_a_struct_is_not_null_if_one_of_its_files_has_a_value(table: ld.LanceDataset) -> None:
    table.add_columns(pa.table({"s": [{"r": 1}, {"r": 2}, None, None, {"r": None}]}))
    assert column(table, "s") == [
        {"p": 1, "q": 1.5, "r": 1},
        {"p": None, "q": None, "r": 2},
        {"p": 3, "q": None, "r": None},
        {"p": 4, "q": 4.5, "r": None},
        {"p": 5, "q": 5.5, "r": None},
    ]
    assert table.count_rows("s IS NULL") == 0


def test_a_column_merge_uses_the_last_equal_key_and_matches_nulls(table: ld.LanceDataset) -> None:
    other = pa.table({"k": ["z", "w", "w", None, "none"], "n": [1, 2, 3, 4, 5], "t": list("abcde")})
    table.merge(other, "b", "k")
    assert column(table, "n") == [None, 3, 4, None, 1]
    assert column(table, "t") == [None, "c", "d", None, "a"]
    table.merge(pa.table({"_rowid": pa.array([1 << 32], pa.uint64()), "at": ["here"]}), "_rowid")
    assert column(table, "at") == [None, None, "here", None, None]


@pytest.mark.parametrize(
    ("other", "left_on", "right_on", "message"),
    [
        (pa.table({"a": ["x"], "n": [1]}), "a", None, "different types"),
        (pa.table({"a": [1], "b": ["x"]}), "a", None, "already exists"),
        (pa.table({"k": [1], "n": [1]}), "a", None, "no column 'a'"),
        (pa.table({"k": [1], "n": [1]}), "z", "k", "no column 'z'"),
        (pa.table({"a": [1]}), "a", None, "the data does not have columns to merge"),
        (pa.table({"k": [[1]], "n": [1]}), "l", "k", "cannot be compared"),
    ],
)
def test_invalid_column_merges_are_rejected(
    table: ld.LanceDataset, other: pa.Table, left_on: str, right_on: str | None, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        table.merge(other, left_on, right_on)
    assert table.latest_version == 1


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        ({"a": "b"}, "already exists"),
        ({"n": "nope + 1"}, "no column 'nope'"),
        ({"n": "sum(a)"}, "bad expression"),
        ({"n": 1}, "SQL strings by column name"),
        ({"n.m": "a"}, "cannot contain a dot"),
        ({"n": "CAST(b AS INT)"}, "Could not convert"),
        (pa.field("n", pa.int8(), nullable=False), "must be nullable"),
        (3, "this type of data"),
    ],
)
def test_invalid_new_columns_are_rejected(table: ld.LanceDataset, transforms: Any, message: str) -> None:
    before = files(table)
    with pytest.raises(InvalidInputError, match=message):
        table.add_columns(transforms)
    assert (table.latest_version, files(table)) == (1, before)


def test_values_are_cast_at_every_level(table: ld.LanceDataset) -> None:
    table.alter_columns(
        {"path": "a", "data_type": pa.int8(), "name": "small"},
        {"path": "b", "data_type": pa.dictionary(pa.int8(), pa.string())},
        {"path": "s.p", "data_type": pa.uint16(), "name": "pp"},
        {"path": "l.item", "data_type": pa.int32()},
    )
    types = {field.name: field.type for field in table.schema}
    assert types["small"] == pa.int8()
    assert types["l"] == pa.list_(pa.int32())
    assert types["s"].field("pp").type == pa.uint16()
    expected = ROWS.rename_columns(["small", "b", "s", "l"]).to_pydict()
    expected["s"] = [s and {"pp": s["p"], "q": s["q"]} for s in expected["s"]]
    assert table.to_table().to_pydict() == expected


def test_a_value_that_the_new_type_cannot_hold_is_named(table: ld.LanceDataset) -> None:
    table = ld.write_dataset(pa.table({"a": [1, 300]}), table, mode="append")
    before = files(table)
    with pytest.raises(InvalidInputError, match="300"):
        table.alter_columns({"path": "a", "data_type": pa.int8()})
    assert (table.latest_version, files(table)) == (2, before)


def test_not_null_requires_a_check_for_nulls(table: ld.LanceDataset) -> None:
    for path in ("b", "s", "s.q", "l"):
        with pytest.raises(InvalidInputError, match=rf"{path}: a column with nulls"):
            table.alter_columns({"path": path, "nullable": False})
    table.delete("b IS NULL OR s IS NULL")
    for path in ("b", "s", "s.q", "l", "l.item"):
        table.alter_columns({"path": path, "nullable": False})
    assert not table.schema.field("l").type.value_field.nullable
    with pytest.raises(InvalidInputError, match=r"'b'.* missing and cannot be null"):
        ld.write_dataset(pa.table({"a": [1]}), table, mode="append")


def test_fields_in_lists_are_cast_with_deleted_rows(place: str) -> None:
    type_ = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    lists = [[{"x": 2**40, "y": 1}] * 3, [{"x": 5, "y": 2}], None, [{"x": 6, "y": 3}] * 2]
    table = ld.write_dataset(pa.table({"a": range(4), "l": pa.array(lists, type_)}), place)
    with pytest.raises(InvalidInputError, match="the new type cannot represent"):
        table.alter_columns({"path": "l.item.x", "data_type": pa.int16()})
    table.delete("a = 0")
    table.alter_columns({"path": "l.item.x", "data_type": pa.int16()})
    assert table.schema.field("l").type.value_type.field("x").type == pa.int16()
    assert column(table, "l") == lists[1:]
    table.optimize.compact_files()
    assert column(table, "l") == lists[1:]


def test_dropping_writes_no_files(table: ld.LanceDataset) -> None:
    before = files(table)
    table.drop_columns(["b", "s.q"])
    assert (table.schema.names, files(table)) == (["a", "s", "l"], before)
    assert column(table, "s")[0] == {"p": 1}
    with pytest.raises(InvalidInputError, match="a list of names"):
        table.drop_columns("a")


def test_a_dropped_column_name_can_be_reused(table: ld.LanceDataset) -> None:
    table.drop_columns(["a"])
    table.add_columns({"a": "b"})
    assert column(table, "a") == ROWS["b"].to_pylist()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_columns({"n": "a"}),
        lambda t: t.add_columns(lambda b: pa.record_batch({"n": b["a"]})),
        lambda t: t.merge(pa.table({"a": [1, 7], "n": [1, 7]}), "a"),
    ],
)
def test_columns_are_computed_for_concurrently_appended_rows(
    table: ld.LanceDataset, change: Callable[[ld.LanceDataset], None]
) -> None:
    ld.write_dataset(pa.table({"a": [7]}), table, mode="append")
    ld.dataset(table.uri).delete("a = 2")
    change(table)
    found = dict(zip(column(table, "a"), column(table, "n"), strict=True))
    assert list(found) == [1, 3, 4, 5, 7]
    assert (found[1], found[7]) in ((1, 7), (1, None))


def test_a_cast_keeps_concurrently_appended_rows(table: ld.LanceDataset) -> None:
    ld.write_dataset(pa.table({"a": [7]}), table, mode="append")
    table.alter_columns({"path": "a", "data_type": pa.int8()})
    assert column(table, "a") == [1, 2, 3, 4, 5, 7]


def test_concurrently_appended_nulls_are_detected(table: ld.LanceDataset) -> None:
    ld.write_dataset(pa.table({"a": pa.array([None], pa.int64())}), table, mode="append")
    with pytest.raises(InvalidInputError, match="nulls"):
        table.alter_columns({"path": "a", "nullable": False})


def test_concurrent_additions_of_one_column_name_conflict(table: ld.LanceDataset) -> None:
    other = ld.dataset(table.uri)
    other.add_columns({"n": "a"})
    with pytest.raises(InvalidInputError, match="already exists"):
        table.add_columns({"n": "b"})
    table.checkout_latest()
    assert column(table, "n") == [1, 2, 3, 4, 5]


def test_a_stream_cannot_be_read_twice(table: ld.LanceDataset) -> None:
    ld.dataset(table.uri).alter_columns({"path": "a", "data_type": pa.int8()})
    with pytest.raises(IncompatibleError, match="read only once"):
        table.add_columns(pa.table({"n": range(5)}).to_reader())
    assert "n" not in ld.dataset(table.uri).schema.names


def test_columns_of_a_table_without_rows(place: str, hasty: dict[str, str]) -> None:
    table = ld.write_dataset(pa.table({"a": pa.array([], pa.int64())}), place, storage_options=hasty)
    table.add_columns({"n": "a + 1"})
    table.add_columns(pa.table({"m": pa.array([], pa.int8())}))
    table.merge(pa.table({"a": [1], "k": ["x"]}), "a")
    table.alter_columns({"path": "a", "data_type": pa.int32()})
    table.alter_columns({"path": "n", "nullable": False})
    with pytest.raises(InvalidInputError, match="output_schema"):
        table.add_columns(lambda batch: batch)
    assert table.schema.names == ["a", "n", "m", "k"]
    assert table.count_rows() == 0


def test_column_changes_accept_a_commit_message(table: ld.LanceDataset) -> None:
    table.add_columns({"n": "a"}, commit_message="more", transaction_properties={"who": "me"})
    assert table.get_transactions(1)[0].transaction_properties["who"] == "me"  # type: ignore[union-attr]
    assert table.get_transactions(1)[0].commit_message == "more"  # type: ignore[union-attr]
    with pytest.raises(InvalidInputError, match="not a string"):
        table.drop_columns(["n"], transaction_properties={"n": 1})  # type: ignore[dict-item]


def test_other_handles_keep_their_version_and_files(table: ld.LanceDataset) -> None:
    other = ld.dataset(table.uri)
    table.drop_columns(["b"])
    table.alter_columns({"path": "a", "data_type": pa.int8()})
    assert (other.version, other.latest_version, other.to_table()) == (1, 3, ROWS)


def test_computed_files_are_reused_after_a_lost_race(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = ld.write_dataset(pa.table({"a": range(6)}), path, max_rows_per_file=2)
    seen: list[int] = []

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        if len(seen) < 6:  # another writer wins twice
            ld.dataset(path).insert(pa.table({"a": [100 + len(seen)]}))
        seen.extend(batch["a"].to_pylist())
        return pa.record_batch({"b": pc.multiply(batch["a"], 2)})

    dataset.add_columns(ld.batch_udf(output_schema=pa.schema({"b": pa.int64()}))(double))
    rows = dataset.to_table().to_pydict()
    assert rows["b"] == [2 * a for a in rows["a"]]
    assert sorted(seen) == sorted(rows["a"])
    named = {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}
    assert {file.name for file in (path / "data").iterdir()} == named


def test_columns_are_recomputed_after_a_conflicting_change(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = ld.write_dataset(pa.table({"a": [1, 2]}), path)
    calls = []

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        if len(calls) == 1:
            ld.dataset(path).add_columns({"c": "a + 1"})
        return pa.record_batch({"b": pc.multiply(batch["a"], 2)})

    dataset.add_columns(ld.batch_udf(output_schema=pa.schema({"b": pa.int64()}))(double))
    assert dataset.to_table().to_pydict() == {"a": [1, 2], "c": [2, 3], "b": [2, 4]}
    assert calls == [2, 2]
    assert len(list((path / "data").iterdir())) == 3


KEYED = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true", "note": "n"}),
        pa.field(
            "c", pa.int32(), metadata={"computed_column": "true", "computed_column.expression": "id", "note": "n"}
        ),
        pa.field("s", pa.struct([pa.field("k", pa.int64(), metadata={"note": "n"})]), metadata={"note": "n"}),
        pa.field("u", pa.uuid()),
        pa.field("j", pa.json_()),
        pa.field("w", pa.binary(), metadata={"ARROW:extension:name": "x.y", "ARROW:extension:metadata": "{}"}),
    ]
)
TYPES = {
    "s": {},
    "u": {"ARROW:extension:name": "arrow.uuid", "ARROW:extension:metadata": ""},
    "j": {"ARROW:extension:name": "lance.json", "ARROW:extension:metadata": ""},
    "w": {"ARROW:extension:name": "x.y", "ARROW:extension:metadata": "{}"},
}


@pytest.fixture
def keyed(place: str) -> ld.LanceDataset:
    uuids, documents = pa.array([b"u" * 16], pa.uuid()), pa.array(['{"a":1}'], pa.json_())
    values = [pa.array([1]), pa.array([2], pa.int32()), pa.array([{"k": 3}]), uuids, documents, pa.array([b"w"])]
    arrays = [v.cast(f.type) if f.name == "s" else v for v, f in zip(values, KEYED, strict=True)]
    return ld.write_dataset(pa.table(arrays, schema=KEYED), place)


def metadata(table: ld.LanceDataset, name: str) -> list[dict[str, str]]:
    return [dict(f.metadata) for f in table.handle.snapshot.schema.by_path(name).walk()]


@pytest.mark.parametrize("name", KEYED.names)
@pytest.mark.parametrize("way", ["sql", "function"])
def test_a_new_column_copies_the_type_but_not_the_metadata(keyed: ld.LanceDataset, name: str, way: str) -> None:
    if way == "sql":
        keyed.add_columns({"new": name})
    else:
        keyed.add_columns(lambda batch: batch.select([name]).rename_columns(["new"]))
    old, new = keyed.schema.field(name), keyed.schema.field("new")
    assert (new.type, new.nullable) == (old.type, old.nullable)
    assert column(keyed, "new") == column(keyed, name)
    assert metadata(keyed, "new") == [TYPES.get(name, {}), *([{}] if name == "s" else [])]
    assert [f.name() for f in keyed.lance_schema.unenforced_primary_key()] == ["id"]


@pytest.mark.parametrize("way", ["add_columns", "merge", "fragment"])
@pytest.mark.parametrize("name", ["id", "c"])
def test_imported_columns_do_not_declare_keys_or_computed_columns(keyed: ld.LanceDataset, name: str, way: str) -> None:
    data = keyed.to_table([name]).rename_columns(["new"]).replace_schema_metadata({"mv.definition": "{}", "own": "1"})
    if way == "add_columns":
        keyed.add_columns(data)
    elif way == "merge":
        keyed.merge(data.append_column("id", keyed.to_table(["id"])["id"]), "id")
    else:
        (fragment,) = keyed.get_fragments()
        _, schema = fragment.add_columns(data.to_reader())
        assert [f.name() for f in schema.unenforced_primary_key()] == ["id"]
        return
    assert metadata(keyed, "new") == [{"note": "n"}]
    assert keyed.schema.metadata == {b"own": b"1"}
    assert [f.name() for f in keyed.lance_schema.unenforced_primary_key()] == ["id"]


def test_an_explicit_schema_cannot_extend_the_primary_key(keyed: ld.LanceDataset) -> None:
    key = pa.schema([KEYED.field("id").with_name("new")])
    function = ld.batch_udf(output_schema=key)(lambda batch: batch.select(["id"]).rename_columns(["new"]))
    with pytest.raises(InvalidInputError, match="primary key of a table cannot be changed"):
        keyed.add_columns(function)
    assert keyed.version == 1


def test_packed_fields_are_not_cast_and_maps_keep_their_fields(tmp_path: Path) -> None:
    pair = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    columns = {
        "m": pa.array([[("k", {"x": 1, "y": 2})], None], pa.map_(pa.string(), pair)),
        "f": pa.array([[{"x": 1, "y": 2}], None], pa.list_(pair, 1)),
        "p": pa.array([{"x": 1, "y": 2}] * 2, pair),
        "q": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
    }
    schema = pa.schema([pa.field(name, array.type) for name, array in columns.items()])
    schema = schema.set(2, schema.field("p").with_metadata({"lance-encoding:packed": "true"}))
    table = ld.write_dataset(pa.table(columns, schema=schema), tmp_path / "t.lance", data_storage_version="2.2")
    for path in ("m.entries.value.x", "m.entries.key", "f.item.x", "p.x", "q.entries.value"):
        with pytest.raises(InvalidInputError, match="packed structs cannot be cast"):
            table.alter_columns({"path": path, "data_type": pa.int64()})
    for change in (
        {"path": "m.entries.key", "nullable": True},
        {"path": "m.entries.key", "name": "k"},
        {"path": "m.entries.value", "name": "v"},
        {"path": "m.entries", "nullable": True},
    ):
        with pytest.raises(InvalidInputError, match="keys and entries of a map"):
            table.alter_columns(change)
    assert (table.version, table.schema) == (1, schema)
    table.alter_columns({"path": "q.entries.value", "nullable": False}, {"path": "m.entries.value.x", "name": "z"})
    assert not table.schema.field("q").type.item_field.nullable
    assert column(table, "m") == [[("k", {"z": 1, "y": 2})], None]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_tables_with_fields_in_several_files_are_valid(tmp_path: Path, version: str) -> None:
    rows = pa.table({"s": [{"x": 1, "y": 2}], "l": [[{"x": 3}]]})
    table = ld.write_dataset(rows, tmp_path / "t.lance", data_storage_version=version)
    table.alter_columns({"path": "s.x", "data_type": pa.int32()}, {"path": "l.item.x", "data_type": pa.int8()})
    table.add_columns(pa.table({"s": [{"z": "w"}]}))
    table.validate()
    assert table.to_table().to_pylist() == [{"s": {"x": 1, "y": 2, "z": "w"}, "l": [{"x": 3}]}]
