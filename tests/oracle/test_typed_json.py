"""Binary JSON with decimals, dates, times, intervals and bytes, compared with pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jsonb import (
    FIELD,
    Member,
    array,
    date,
    decimal,
    document,
    extension,
    interval,
    number,
    old_zoned,
    table,
    text,
    timestamp,
    value,
    zoned,
)

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan

VERSIONS = ["2.0", "2.1", "2.2"]
DAY = 86_400_000_000

KNOWN: list[tuple[str, str]] = [
    ("2000000000000000", "null"),
    ("200000002000000100", "0"),
    ("2000000020000009608000000000000000", "-0.0"),
    ("200000002000000110", "null"),
    ("20000000200000054000000005", "5"),
    ("200000002000000a70ffffffffffffcfc702", "-123.45"),
    ("2000000020000012700000000000000000000000000000007b01", "12.3"),
    ("2000000020000013700000000000000000000000000000007b0a01", "12.3"),
    ("200000002000000a700000000000000001ff", "9.999999999999997e-256"),
    ("200000006000000400abcdef", '"ABCDEF"'),
    ("200000006000000100", '""'),
    ("20000000600000051000004e20", '"2024-10-04"'),
    ("200000006000000510ffffffff", '"1969-12-31"'),
    ("200000006000000920000000000000000a", '"1970-01-01 00:00:00.000010"'),
    ("200000006000000d30000000000000000000007080", '"1970-01-01 08:00:00.000000 +0800"'),
    ("200000006000000a30000000000000000008", '"1970-01-01 08:00:00.000000 +0800"'),
    ("20000000600000114000000001000000020000000000989680", '"1 month 2 days 00:00:10"'),
    ("200000006000001140ffffffff00000002ffffffffffffffff", '"-1 month 2 days -00:00:00.000001"'),
]


@pytest.mark.parametrize("version", VERSIONS)
def test_known_jsonb_bytes_decode_to_known_strings(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(table([bytes.fromhex(data) for data, _ in KNOWN]), path, data_storage_version=version)
    expected = [found for _, found in KNOWN]
    assert lance.dataset(path).to_table()["j"].to_pylist() == expected
    assert ld.dataset(path).to_table()["j"].to_pylist() == expected


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(1, bits).flatmap(lambda n: st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1))


scales = st.sampled_from([0, 1, 2, 22, 23]) | st.integers(0, 255)
typed: st.SearchStrategy[Member] = st.one_of(
    st.builds(decimal, signed(64), scales, st.just(8)),
    st.builds(decimal, signed(128), scales, st.just(16), st.none() | st.just(38)),
    st.builds(decimal, signed(256), scales, st.just(32), st.none() | st.just(76)),
    st.builds(date, st.integers(-4_371_587, 2_932_896)),
    st.builds(timestamp, st.integers(-4_371_580 * DAY, 2_932_890 * DAY)),
    st.builds(zoned, st.integers(-4_371_580 * DAY, 2_932_890 * DAY), st.integers(-93_599, 93_599)),
    st.builds(old_zoned, st.integers(-100_000 * DAY, 100_000 * DAY), st.integers(-25, 25)),
    st.builds(interval, signed(24), signed(24), signed(60)),
    st.builds(extension, st.just(0), st.binary(max_size=6)),
    st.builds(text, st.text(max_size=4)),
)
members = st.recursive(
    typed,
    lambda inner: (
        st.builds(array, st.lists(inner, max_size=3))
        | st.builds(document, st.dictionaries(st.text(max_size=2), inner, max_size=3))
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(st.none() | members.map(value), min_size=1, max_size=30), st.sampled_from(VERSIONS))
def test_generated_jsonb_values_decode_like_pylance(
    tmp_path_factory: pytest.TempPathFactory, values: list[bytes | None], version: str
) -> None:
    path = str(tmp_path_factory.mktemp("json") / "t.lance")
    ld.write_dataset(table(values), path, data_storage_version=version)
    assert ld.dataset(path).to_table()["j"].to_pylist() == lance.dataset(path).to_table()["j"].to_pylist()
    assert stored(path) == values


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40) | members.map(value), min_size=1, max_size=5), st.data())
def test_random_jsonb_bytes_decode_or_fail_and_only_valid_ones_are_written(
    tmp_path_factory: pytest.TempPathFactory, values: list[bytes], data: st.DataObject
) -> None:
    broken = bytearray(values[0])
    if broken:
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("json")
    lance.write_dataset(table([bytes(broken), *values[1:]]), str(folder / "t.lance"))
    read = True
    try:
        ld.dataset(str(folder / "t.lance")).to_table().validate(full=True)
    except LanceDuckError:
        read = False
    try:
        written = ld.write_dataset(table([bytes(broken), *values[1:]]), folder / "u.lance")
    except InvalidInputError:
        return
    assert read
    written.to_table().validate(full=True)


def stored(path: str) -> list[bytes | None]:
    """The bytes of the column j."""
    scan = TableScan(ld.dataset(path).handle.snapshot)
    plan = scan.plan(ScanOptions(columns=["j"]), arrow_types={"j": pa.large_binary()})
    found: list[bytes | None] = scan.reader(plan).read_all()["j"].to_pylist()
    return found


VALUES = [
    value(decimal(-12345, 2, 8)),
    value(date(20_000)),
    None,
    value(document({"d": decimal(5, 1, 16), "b": extension(0, b"\xab")})),
]
TEXTS = ["-123.45", '"2024-10-04"', None, '{"d":0.5,"b":"AB"}']


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_and_updates_of_other_columns_keep_the_jsonb_bytes(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(table(VALUES, id=pa.array(range(4))), path, data_storage_version=version)
    dataset.insert(table(VALUES, id=pa.array(range(4, 8))))
    dataset.delete("id = 6")
    dataset.update({"id": "id + 100"}, "id IN (1, 3)")
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    rows = dataset.to_table().sort_by("id")
    assert rows["id"].to_pylist() == [0, 2, 4, 5, 7, 101, 103]
    assert rows["j"].to_pylist() == [TEXTS[i % 4] for i in (0, 2, 4, 5, 7, 1, 3)]
    assert sorted(filter(None, stored(path))) == sorted(filter(None, (VALUES[i % 4] for i in (0, 2, 4, 5, 7, 1, 3))))
    assert dataset.validate() is None
    assert rows["j"].to_pylist() == lance.dataset(path).to_table().sort_by("id")["j"].to_pylist()


def test_filters_sql_and_merges_read_decoded_json(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(table(VALUES, id=pa.array(range(4))), path)
    assert dataset.count_rows("json_extract(j, '$.d') = '0.5'") == 1
    with ld.connect({"t": path}) as connection:
        found = connection.execute("SELECT id, j ->> '$.b' FROM t WHERE j ->> '$.d' = '0.5'").fetchall()
        assert found == [(3, "AB")]
        connection.execute("UPDATE t SET id = 9 WHERE CAST(j AS VARCHAR) = '-123.45'")
    dataset.checkout_latest()
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        table([value(timestamp(0)), value(interval(1, 0, 0))], id=pa.array([1, 7]))
    )
    rows = {row["id"]: row["j"] for row in dataset.to_table().to_pylist()}
    assert rows == {9: TEXTS[0], 1: '"1970-01-01 00:00:00.000000"', 2: None, 3: TEXTS[3], 7: '"1 month"'}


NESTED: list[tuple[Any, Any]] = [
    (pa.struct([FIELD]), [{"j": each} for each in VALUES]),
    (pa.list_(FIELD.with_name("item")), [[each, each] for each in VALUES]),
]


@pytest.mark.parametrize(("type_", "values"), NESTED, ids=["struct", "list"])
def test_nested_json_keeps_its_bytes(type_: pa.DataType, values: list[Any], tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    rows = pa.table({"n": pa.array(values, type_)}, schema=pa.schema([pa.field("n", type_)]))
    dataset = ld.write_dataset(rows, path)
    dataset.insert(rows)
    dataset.optimize.compact_files()
    assert dataset.to_table() == lance.dataset(path).to_table().cast(dataset.schema)
    scan = TableScan(dataset.handle.snapshot)
    (field,) = dataset.handle.snapshot.schema.fields
    plan = scan.plan(ScanOptions(), arrow_types={"n": field.binary_json_type()})
    assert scan.reader(plan).read_all()["n"].to_pylist() == values * 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("repeats", [1, 300], ids=["once", "in a dictionary"])
def test_a_json_value_of_an_unknown_type_affects_only_its_row(version: str, repeats: int, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    values: list[bytes | None] = [value(document({"some_long_key": decimal(i % 5, 1, 8)})) for i in range(1000)]
    values[500 : 500 + repeats] = [value(array([number(0x80), text("some_long_text")]))] * repeats
    lance.write_dataset(table(values, id=pa.array(range(1000))), path, data_storage_version=version)
    dataset = ld.dataset(path)
    with pytest.raises(
        CorruptError, match=r"(row|value) 500: the JSON value is corrupt: found unknown number, tag 0x80"
    ):
        dataset.to_table()
    with pytest.raises(CorruptError, match=r"(row|value) 500: "):
        dataset.take([3, 500])
    assert dataset.to_table(columns=["id"]).num_rows == 1000
    assert dataset.to_table(filter=f"id < 500 OR id >= {500 + repeats}").num_rows == 1000 - repeats
    assert dataset.take([0, 499, 999])["j"].to_pylist() == [f'{{"some_long_key":0.{i % 5}}}' for i in (0, 499, 999)]
    with ld.connect({"t": path}) as connection:
        assert connection.execute("SELECT j ->> '$.some_long_key' FROM t WHERE id = 7").fetchall() == [("0.2",)]
    dataset.insert(table([None], id=pa.array([1000])))
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    assert stored(path) == [*values, None]
    dataset.delete(f"id >= 500 AND id < {500 + repeats}")
    assert dataset.to_table().num_rows == 1001 - repeats


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a":1}', "unknown kind of member, kind 7"),
        (b"", "an empty value"),
        (value(number(0x80)), "unknown number, tag 0x80"),
        (value(extension(0x50)), "unknown extension value, tag 0x50"),
        (value(extension(0x30, bytes(8) + b"\x7f")), "unknown extension value, tag 0x30"),
        (value((1, b"\xff")), "a string that is not UTF-8"),
        (value(document({"k": (1, b"\xff")})), "a string that is not UTF-8"),
        (value(text("a")) + b"x", "bytes that belong to no member"),
        (value(text("abc"))[:-1], "value ends within a member"),
        (value(array([(5, b"\x80\0\0\0x")])), "bytes that belong to no member"),
    ],
)
def test_bytes_that_are_not_jsonb_are_not_written(data: bytes, found: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"column 'j', row 2: the value is not JSONB: .*found {found}"):
        ld.write_dataset(table([None, VALUES[0], data]), tmp_path / "t.lance")
    assert not (tmp_path / "t.lance").exists()


def test_deeply_nested_json_is_rejected(tmp_path: Path) -> None:
    member = text("x")
    for _ in range(600):
        member = array([member])
    with pytest.raises(InvalidInputError, match=r"row 0: the value is not JSONB: .*512 levels"):
        ld.write_dataset(table([value(member)]), tmp_path / "t.lance")
