"""A few rows read by value, compared with a full read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.file import leaf
from lance_duck.file.column import open_column
from lance_duck.store.request import run

ROWS = 9_000


def columns() -> dict[str, pa.Array]:
    """Return columns of each encoding with single-value reads, and some without."""
    rng = np.random.default_rng(7)
    null = rng.random(ROWS) < 0.2
    numbers = rng.integers(-(1 << 40), 1 << 40, ROWS)
    texts = [f"text {n}" if n % 3 else "ä" * (n % 5) for n in numbers.tolist()]
    return {
        "wide": pa.array(numbers),
        "small": pa.array(rng.integers(0, 60, ROWS), pa.int8()),
        "nullable": pa.array(numbers, mask=null),
        "sparse": pa.array(numbers, mask=~null),
        "float": pa.array(rng.random(ROWS), mask=null),
        "decimal": pa.array(list(range(ROWS)), pa.decimal128(22, 0)),
        "text": pa.array(texts),
        "nullable text": pa.array(texts, mask=null),
        "long text": pa.array([t * 40 for t in texts]),
        "long nullable text": pa.array([t * 40 for t in texts], mask=null),
        "binary": pa.array([t.encode() for t in texts], pa.large_binary()),
        "repeated": pa.array(np.array(["one", "two", "three"])[rng.integers(0, 3, ROWS)], mask=null),
        "flag": pa.array(null, mask=null[::-1]),
        "constant": pa.array([7] * ROWS),
        "half constant": pa.array([7] * ROWS, mask=null),
        "nothing": pa.nulls(ROWS, pa.int32()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * 4), pa.float32()), 4),
        "long vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * 80), pa.float32()), 80),
        "list": pa.array([[1] * (n % 3) for n in range(ROWS)]),
        "struct": pa.StructArray.from_arrays([pa.array(numbers)], ["x"]),
    }


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def readers(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("few"))
    table = ld.write_dataset(pa.table(columns()), path, data_storage_version=request.param)
    snapshot = table.handle.snapshot
    data_file = snapshot.fragments[0].files[0]
    file = snapshot.data_file(data_file)

    def locate(field_id):
        column = data_file.column_of(field_id)
        return None if column is None else (file, column)

    return {field.name: open_column(field, locate, ROWS) for field in snapshot.schema.fields}, request.param


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32))
def test_a_few_rows_equal_those_of_a_full_read(readers, seed):
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, ROWS, int(rng.choice([1, 2, 40]))))
    for name, reader in readers[0].items():
        found = reader.read_points(rows)
        if found is not None:
            found.validate(full=True)
            assert found.equals(run(reader.read(rows))), name


def test_common_column_types_use_the_fast_take(readers):
    by_name, version = readers
    taken = {name for name, reader in by_name.items() if reader.read_points(np.array([3, 5_000])) is not None}
    others = {"2.0": set(by_name), "2.1": {"list", "struct", "flag", "constant"}, "2.2": {"list", "struct", "flag"}}
    assert taken == set(by_name) - others[version]


PLAIN = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.duration("ms"), pa.timestamp("us", "UTC")),
]


def of_type(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    width = pa.int64() if type_.bit_width == 64 else pa.int32()
    return numbers.cast(type_) if not pa.types.is_temporal(type_) else numbers.cast(width).cast(type_)


@pytest.mark.parametrize("type_", PLAIN, ids=str)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_fast_and_general_reads_of_numbers_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: pa.DataType, version: str
) -> None:
    days = 86_400_000 if type_ == pa.date64() else 1
    numbers = pa.array([n % 100 * days for n in range(3000)], pa.int64())
    values = numbers.cast(pa.uint8()).cast(type_) if type_ in (pa.float16(), pa.bool_()) else of_type(numbers, type_)
    dataset = ld.write_dataset(pa.table({"x": values}), tmp_path / "t", data_storage_version=version)
    quick = dataset.to_table()["x"], dataset.take([7, 2999])["x"]
    monkeypatch.setattr(leaf, "_has_plain", lambda *_: False)
    plain = ld.dataset(tmp_path / "t")
    for some, same in zip(quick, (plain.to_table()["x"], plain.take([7, 2999])["x"]), strict=True):
        some.validate(full=True)
        assert some.equals(same)
    assert quick[0].combine_chunks().equals(values)
