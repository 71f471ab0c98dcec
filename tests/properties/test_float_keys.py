"""Keys of floats are equal as in SQL: all NaN are one key, and both zeros are."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import DataMismatchError, RetryableError
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.verbs.rows.keys import KeyIndex

BITS = {
    "f2": ("u2", [0x7E00, 0xFE00, 0x7E01, 0xFC01, 0x0000, 0x8000, 0x3C00, 0x7C00, 0xFC00]),
    "f4": ("u4", [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFC00005, 0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000]),
    "f8": (
        "u8",
        [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (0xFFF8 << 48) + 7, 0, 1 << 63, 0x3FF0 << 48, 0x7FF0 << 48],
    ),
}
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}


def floats(kind: str, picks: list[int | None]) -> pa.Array:
    """Return floats by the numbers of their bit patterns; None is null."""
    unsigned, patterns = BITS[kind]
    bits = np.array([0 if i is None else patterns[i % len(patterns)] for i in picks], unsigned)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(np.dtype(kind)),
        len(picks),
        [pa.array([i is not None for i in picks]).buffers()[1], pa.py_buffer(bits)],
    )


def sql_key(value: float | None) -> object:
    return None if value is None else "nan" if math.isnan(value) else value + 0.0


PICKS = st.lists(st.one_of(st.integers(0, 8), st.none()), min_size=1, max_size=8)


@given(kind=st.sampled_from(sorted(BITS)), old=PICKS, new=PICKS, encoded=st.booleans(), second=st.booleans())
def test_float_keys_match_like_in_sql(
    kind: str, old: list[int | None], new: list[int | None], encoded: bool, second: bool
) -> None:
    columns = [[floats(kind, picks)] for picks in (old, new)]
    for number, (column,) in enumerate(list(columns)):
        columns[number] = [column.dictionary_encode()] if encoded and kind != "f2" else [column]
        columns[number] += [pa.array([i % 2 for i in range(len(column))])] if second else []
    names = ["k", "l"][: 1 + second]
    rows = [list(zip(*([sql_key(v) for v in column.to_pylist()] for column in each), strict=True)) for each in columns]
    index = KeyIndex([pa.chunked_array([column]) for column in columns[1]], names)
    known = {row: index.codes[i] for i, row in reversed(list(enumerate(rows[1]))) if None not in row}
    assert index.find(columns[0]).tolist() == [known.get(row, -1) for row in rows[0]]
    assert index.count == len(known)
    assert [row in known for row in rows[0]] == [
        key is not None and key in key_bytes(columns[1], names).to_pylist()
        for key in key_bytes(columns[0], names).to_pylist()
    ]


@settings(max_examples=20)
@given(kind=st.sampled_from(sorted(BITS)), old=PICKS, new=PICKS)
def test_merge_insert_matches_the_rows_that_sql_matches(
    tmp_path_factory: pytest.TempPathFactory, kind: str, old: list[int | None], new: list[int | None]
) -> None:
    path = tmp_path_factory.mktemp("keys") / "t.lance"
    table = pa.table({"k": floats(kind, old), "v": range(len(old))})
    source = pa.table({"k": floats(kind, new), "v": range(100, 100 + len(new))})
    dataset = ld.write_dataset(table, path)
    keys = [sql_key(value) for value in source["k"].to_pylist() if value is not None]
    merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    if len(set(keys)) < len(keys):
        with pytest.raises(DataMismatchError, match="more than once"):
            merge.execute(source)
    own = duckdb.connect()
    wide = pa.float32() if kind == "f2" else table["k"].type
    own.register("s", source.set_column(0, "k", source["k"].cast(wide)))
    own.register("r", table.set_column(0, "k", table["k"].cast(wide)))
    own.execute("CREATE TABLE t AS FROM r")
    first = "(SELECT * FROM s QUALIFY k IS NULL OR row_number() OVER (PARTITION BY k ORDER BY v) = 1) AS s"
    own.execute(
        f"MERGE INTO t USING {first} ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT"
    )
    merge.source_dedupe_behavior("first_seen").execute(source)
    found = sorted(ld.dataset(path).to_table().column("v").to_pylist())
    assert found == sorted(v for (v,) in own.execute("SELECT v FROM t").fetchall())


@pytest.mark.parametrize("kind", sorted(BITS))
@pytest.mark.parametrize("index", [None, "BTREE", "BITMAP", "ZONEMAP"])
def test_an_indexed_merge_finds_every_nan_and_zero(tmp_path: Path, kind: str, index: str | None) -> None:
    picks = [*range(8), *([6] * 3000)]
    dataset = ld.write_dataset(pa.table({"k": floats(kind, picks), "v": range(len(picks))}), tmp_path / "t.lance")
    if index is not None:
        dataset.create_scalar_index("k", index)
    for pick, count in ((1, 4), (3, 4), (5, 2)):
        source = pa.table({"k": floats(kind, [pick]), "v": [-pick]})
        result = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (count, 0)


@pytest.mark.parametrize("kind", sorted(BITS))
@pytest.mark.parametrize("primary", [True, False])
@pytest.mark.parametrize(("mine", "theirs"), [(0, 1), (3, 2), (4, 5)])
def test_concurrent_merges_do_not_insert_an_equal_key_twice(
    tmp_path: Path, kind: str, primary: bool, mine: int, theirs: int
) -> None:
    field = pa.field("k", floats(kind, [0]).type, nullable=False, metadata=PRIMARY_KEY if primary else None)
    schema = pa.schema([field, ("v", pa.int64())])

    def rows(pick: int) -> pa.Table:
        return pa.Table.from_arrays([floats(kind, [pick]), pa.array([pick])], schema=schema)

    ld.write_dataset(rows(6), tmp_path / "t.lance")
    late = ld.dataset(tmp_path / "t.lance")

    def merge(dataset: ld.LanceDataset, pick: int) -> Any:
        merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        return merge.conflict_retries(0).execute(rows(pick))

    merge(ld.dataset(tmp_path / "t.lance"), theirs)
    with pytest.raises(RetryableError):
        merge(late, mine)
    late.checkout_latest()
    assert merge(late, mine)["num_updated_rows"] == 1


@given(kind=st.sampled_from(sorted(BITS)), old=PICKS, new=PICKS)
@settings(max_examples=20)
def test_column_joins_on_floats_find_equal_keys(
    tmp_path_factory: pytest.TempPathFactory, kind: str, old: list[int | None], new: list[int | None]
) -> None:
    new = [6, *(pick for pick in new if pick is not None)]
    dataset = ld.write_dataset(pa.table({"k": floats(kind, old)}), tmp_path_factory.mktemp("join") / "t.lance")
    dataset.merge(pa.table({"k": floats(kind, new), "v": range(len(new))}), "k")
    last = {sql_key(value): i for i, value in enumerate(floats(kind, new).to_pylist())}
    assert dataset.to_table()["v"].to_pylist() == [
        None if pick is None else last.get(sql_key(floats(kind, [pick])[0].as_py())) for pick in old
    ]


@pytest.mark.parametrize(
    ("stored", "given_type", "stored_key", "given_key"),
    [
        (pa.timestamp("us"), pa.timestamp("ns"), 1_000_000, 1_000_000_000),
        (pa.timestamp("s"), pa.timestamp("us"), 1, 1_000_000),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), 1_000_000, 1_000),
        (pa.decimal128(10, 2), pa.decimal128(20, 4), Decimal("1.50"), Decimal("1.5000")),
        (pa.decimal128(10, 2), pa.decimal128(5, 1), Decimal("1.50"), Decimal("1.5")),
        (pa.time64("us"), pa.time64("ns"), 5, 5_000),
        (pa.float16(), pa.float64(), -0.0, 0.0),
        (pa.float32(), pa.float64(), math.nan, -math.nan),
        (pa.int32(), pa.float64(), 0, -0.0),
    ],
)
def test_keys_match_across_units_and_widths(
    tmp_path: Path, stored: pa.DataType, given_type: pa.DataType, stored_key: Any, given_key: Any
) -> None:
    old = np.float16(stored_key) if pa.types.is_float16(stored) else stored_key
    dataset = ld.write_dataset(pa.table({"k": pa.array([old], stored), "v": [1]}), tmp_path / "t.lance")
    source = pa.table({"k": pa.array([given_key], given_type), "v": [2]})
    dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)
    assert dataset.to_table()["v"].to_pylist() == [2]


@pytest.mark.parametrize("kind", sorted(BITS))
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t FROM s ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        "INSERT OR REPLACE INTO t FROM s",
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT",
    ],
)
def test_statements_on_keys_find_every_nan_and_zero(tmp_path: Path, kind: str, statement: str) -> None:
    field = pa.field("k", floats(kind, [0]).type, nullable=False, metadata=PRIMARY_KEY)
    schema = pa.schema([field, ("v", pa.int64())])
    old = pa.Table.from_arrays([floats(kind, [0, 4, 6]), pa.array([1, 2, 3])], schema=schema)
    dataset = ld.write_dataset(old, tmp_path / "t.lance")
    given = floats(kind, [1, 5])
    new = pa.table({"k": given.cast(pa.float32()) if kind == "f2" else given, "v": [10, 20]})
    with ld.connect({"t": dataset.uri}) as connection:
        connection.register("s", new)
        assert connection.execute(statement).fetchall() == [(2,)]
    assert sorted(ld.dataset(dataset.uri).to_table()["v"].to_pylist()) == [3, 10, 20]


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v", [2, 3, 10]),
        ("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.k > 1 THEN DELETE", [2, 3]),
        ("MERGE INTO t USING s ON t.k = s.k AND s.k > 1 WHEN MATCHED THEN UPDATE SET v = s.v + t.v", [2, 3, 11]),
        ("INSERT INTO t FROM s ON CONFLICT (k) DO UPDATE SET v = 7 WHERE excluded.k > t.v", [2, 3, 7]),
    ],
)
def test_statements_match_a_nan_of_their_source_among_other_keys(
    tmp_path: Path, kind: str, statement: str, expected: list[int]
) -> None:
    type_ = floats(kind, [0]).type
    ld.write_dataset(pa.table({"k": pa.array([math.nan, 0.5, -math.inf], type_), "v": [1, 2, 3]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        connection.register("s", pa.table({"k": pa.array([math.nan], type_), "v": [10]}))
        connection.execute(statement)
        assert sorted(v for (v,) in connection.execute("SELECT v FROM t").fetchall()) == expected
