"""Dictionaries that together outgrow their indices: no rows are lost, and pylance reads all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_duck as ld

INDICES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
VALUES = (pa.string(), pa.large_string(), pa.binary(), pa.int64())
NESTINGS = ("flat", "struct", "list", "map", "fixed")

Rows = dict[int, Any]


def value_of(number: int, type_: pa.DataType) -> Any:
    """A value of a type."""
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return number
    return f"city{number}" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else b"%d" % number


def dictionaries(values: Sequence[Any], index: pa.DataType, type_: pa.DataType) -> pa.DictionaryArray:
    """Return an array with a separate dictionary."""
    encoded = pa.array(values, type_).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(index), encoded.dictionary)


def nested(flat: pa.Array, nesting: str) -> pa.Array:
    """Rows, each with one value, or two where the rows are lists of a fixed size."""
    ends = pa.array(range(len(flat) + 1), pa.int32())
    match nesting:
        case "struct":
            return pa.StructArray.from_arrays([flat], ["d"])
        case "list":
            return pa.ListArray.from_arrays(ends, flat)
        case "map":
            return pa.MapArray.from_arrays(ends, pa.array(["key"] * len(flat)), flat)
        case "fixed":
            return pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([flat], ["d"]), 1)
    return flat


def table(keys: Sequence[int], numbers: Sequence[int], kind: tuple[pa.DataType, pa.DataType, str]) -> pa.Table:
    """Rows of numbers as values of a kind: index type, value type and nesting."""
    index, type_, nesting = kind
    flat = dictionaries([value_of(number, type_) for number in numbers], index, type_)
    return pa.table({"i": pa.array(keys, pa.int64()), "v": nested(flat, nesting)})


def rows_of(data: pa.Table) -> Rows:
    """Values by key."""
    return dict(zip(data.column("i").to_pylist(), data.column("v").to_pylist(), strict=True))


def check(uri: str, model: Rows, type_: pa.DataType) -> None:
    """Check that all reads return the rows of a model with the written type."""
    dataset = ld.dataset(uri)
    data = dataset.to_table()
    assert data.schema.field("v").type == type_
    assert rows_of(data) == model
    assert data.num_rows == len(model)
    assert rows_of(lance.dataset(uri).to_table()) == model
    assert rows_of(pa.Table.from_batches(dataset.to_batches(batch_size=1000), data.schema)) == model
    backwards = dataset.take(list(range(data.num_rows - 1, -1, -1)))
    assert backwards.column("v").to_pylist() == data.column("v").to_pylist()[::-1]
    chosen = dataset.to_table(filter="i % 3 = 0")
    assert rows_of(chosen) == {key: value for key, value in model.items() if key % 3 == 0}
    ordered = dataset.scanner(order_by=["i"]).to_table()
    assert list(rows_of(ordered).items()) == sorted(model.items())
    in_sql = ld.connect({"t": dataset}).execute("SELECT i, v FROM t").fetchall()
    assert {key: _plain(value) for key, value in in_sql} == {key: _plain(value) for key, value in model.items()}


def _plain(value: Any) -> Any:
    """A value without the difference of maps: pairs in Arrow, a dict in DuckDB."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append", "append in chunks", "compact", "merge", "delete", "update"]),
        st.integers(0, 300),
        st.integers(1, 110),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.tuples(st.sampled_from(INDICES), st.sampled_from(VALUES), st.sampled_from(NESTINGS)),
    version=st.sampled_from(["2.0", "2.1", "2.2"]),
    stable=st.booleans(),
    changes=CHANGES,
)
def test_no_change_loses_dictionary_values(
    tmp_path_factory: pytest.TempPathFactory,
    kind: tuple[pa.DataType, pa.DataType, str],
    version: str,
    stable: bool,
    changes: list[tuple[str, int, int]],
) -> None:
    if kind[2] in ("map", "fixed"):
        version = "2.2"
    uri = str(tmp_path_factory.mktemp("t") / "t.lance")
    first = table(range(60), range(60), kind)
    ld.write_dataset(first, uri, data_storage_version=version, enable_stable_row_ids=stable)
    model = rows_of(first)
    for change, start, count in changes:
        apply(uri, model, kind, change, start, count)
    check(uri, model, first.schema.field("v").type)


def apply(
    uri: str, model: Rows, kind: tuple[pa.DataType, pa.DataType, str], change: str, start: int, count: int
) -> None:
    """Change a table and its model."""
    dataset = ld.dataset(uri)
    numbers = range(start, start + count)
    key = max(model, default=-1) + 1
    if change == "append":
        data = table(range(key, key + count), numbers, kind)
        ld.write_dataset(data, uri, mode="append")
        model |= rows_of(data)
    elif change == "append in chunks":
        chunks = [table(range(k, k + count), range(k, k + count), kind) for k in (key, key + count, key + 2 * count)]
        ld.write_dataset(pa.concat_tables(chunks), uri, mode="append")
        for chunk in chunks:
            model |= rows_of(chunk)
    elif change == "compact":
        dataset.optimize.compact_files()
    elif change == "merge":
        data = table(range(start, start + count), range(start + 7, start + count + 7), kind)
        dataset.merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(data)
        model |= rows_of(data)
    elif change == "delete":
        dataset.delete(f"i >= {start} AND i < {start + count}")
        for deleted in numbers:
            model.pop(deleted, None)
    else:
        changed = [k for k in numbers if k in model]
        dataset.update({"i": f"i + {key}"}, where=f"i >= {start} AND i < {start + count}")
        for old in changed:
            model[old + key] = model.pop(old)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_compaction_keeps_fragments_separate_if_their_dictionaries_overflow_the_index_type(
    tmp_path: Path, version: str
) -> None:
    uri = str(tmp_path / "t.lance")
    kind = (pa.int8(), pa.string(), "flat")
    for start in range(0, 300, 50):
        keys = range(start, start + 50)
        dataset = ld.write_dataset(table(keys, keys, kind), uri, mode="append", data_storage_version=version)
    dataset.optimize.compact_files()
    dataset = ld.dataset(uri)
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [100, 100, 100]
    latest = dataset.version
    metrics = dataset.optimize.compact_files()
    assert (metrics.fragments_removed, ld.dataset(uri).version) == (0, latest)
    check(uri, {key: f"city{key}" for key in range(300)}, pa.dictionary(pa.int8(), pa.string()))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_chunks_whose_dictionaries_outgrow_their_indices_become_fragments(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    kind = (pa.int16(), pa.int64(), "struct")
    chunks = [table(keys, keys, kind) for keys in (range(20000), range(20000, 40000), range(30000, 50000))]
    dataset = ld.write_dataset(pa.concat_tables(chunks), uri, data_storage_version=version)
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [20000, 40000]
    model = {
        key: {"d": number}
        for keys in (range(20000), range(20000, 40000), range(30000, 50000))
        for key, number in zip(keys, keys, strict=True)
    }
    assert rows_of(ld.dataset(uri).to_table()) == rows_of(lance.dataset(uri).to_table()) == model


@pytest.fixture
def ruined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a table with one data file whose page dictionaries cannot be merged, as pylance 14 writes it."""
    uri = str(tmp_path / "ruined.lance")
    kind = (pa.int8(), pa.string(), "flat")
    with monkeypatch.context() as patch:
        patch.setattr("lance_duck.file.write.writer.has_narrow_dictionary", lambda _: False)
        chunks = [table(keys, keys, kind) for keys in (range(100), range(100, 200))]
        ld.write_dataset(pa.concat_tables(chunks), uri)
    assert len(ld.dataset(uri).get_fragments()) == 1
    with pytest.raises(pa.ArrowInvalid, match="Dictionary key bigger than the key type"):
        lance.dataset(uri).to_table()
    return uri


def test_a_file_with_an_overflowing_dictionary_is_read_in_chunks_and_fixed_by_compaction(ruined: str) -> None:
    cities = [f"city{key}" for key in range(200)]
    dataset = ld.dataset(ruined)
    data = dataset.to_table()
    assert data.schema.field("v").type == pa.dictionary(pa.int8(), pa.string())
    assert data.column("v").to_pylist() == cities
    assert dataset.take([199, 0, 120]).column("v").to_pylist() == ["city199", "city0", "city120"]
    assert dataset.to_table(filter="v = 'city150'").column("i").to_pylist() == [150]
    assert dataset.count_rows(filter="v >= 'city150' AND i >= 50") == 100
    assert ld.connect({"t": dataset}).execute("SELECT count(DISTINCT v), max(i) FROM t").fetchall() == [(200, 199)]
    dataset.optimize.compact_files()
    check(ruined, dict(enumerate(cities)), pa.dictionary(pa.int8(), pa.string()))


def test_values_in_a_file_with_an_overflowing_dictionary_can_be_changed(ruined: str) -> None:
    keys = range(90, 250)
    changes = pa.table({"i": keys, "v": [f"new{key}" for key in keys]})
    ld.dataset(ruined).merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(changes)
    ld.dataset(ruined).delete("i < 10")
    model = {key: f"new{key}" if key >= 90 else f"city{key}" for key in range(10, 250)}
    assert rows_of(ld.dataset(ruined).to_table()) == model


def test_one_statement_may_add_more_dictionary_values_than_one_file_can_hold(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    keys = range(200)
    ld.write_dataset(table(keys, [0] * 200, (pa.int8(), pa.string(), "flat")), uri)
    connection = ld.connect({"t": ld.dataset(uri)})
    assert connection.execute("UPDATE t SET v = 'sql' || i").fetchall() == [(200,)]
    assert connection.execute("INSERT INTO t SELECT i + 200, 'more' || i FROM range(200) r(i)").fetchall() == [(200,)]
    model = {key: f"sql{key}" for key in keys} | {key + 200: f"more{key}" for key in keys}
    check(uri, model, pa.dictionary(pa.int8(), pa.string()))
    with pytest.raises(
        ld.ArrayLimitError, match=r"column 'v'.*more values than its index type.*cast the column to string"
    ):
        connection.execute("INSERT INTO t SELECT i, 'x' || i FROM range(100000) r(i)")
    check(uri, model, pa.dictionary(pa.int8(), pa.string()))


@pytest.mark.parametrize("type_", [*VALUES, pa.float64(), pa.int8(), pa.bool_()], ids=str)
def test_filters_of_dictionaries_compare_their_entries(tmp_path: Path, type_: pa.DataType) -> None:
    values = [True, False, True] if pa.types.is_boolean(type_) else [value_of(number, type_) for number in (3, 5, 7)]
    flat = dictionaries([*values, None], pa.uint8(), type_)
    dataset = ld.write_dataset(pa.table({"i": range(4), "v": flat}), tmp_path / "t.lance")
    with ld.connect({"t": dataset}) as connection:
        for operator in ("=", "<>", "<", ">=", "IS DISTINCT FROM"):
            found = connection.execute(f"SELECT i FROM t WHERE v {operator} ?", [values[1]]).fetchall()
            plain = f"SELECT i FROM (SELECT * FROM t OFFSET 0) WHERE v {operator} ?"
            assert found == connection.execute(plain, [values[1]]).fetchall()
    found = [row["i"] for row in dataset.to_table(filter=pc.field("v") == pa.scalar(values[1], type_)).to_pylist()]
    assert found == [1]
