"""Batches as arrays of numpy and JAX."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.loading import RowSelection, to_jax, to_numpy

PAIRS = pa.list_(pa.float32(), 2)
BATCH = pa.record_batch(
    {
        "i": pa.array([1, 2, 3, 4], pa.int32()),
        "x": pa.array([1.5, None, 3.0, 4.0]),
        "b": pa.array([True, False, True, True]),
        "v": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], PAIRS),
        "m": pa.array([[[1, 2]] * 3] * 4, pa.list_(pa.list_(pa.int16(), 2), 3)),
        "s": pa.array(["a", None, "c", "d"]),
        "l": pa.array([[1], [], None, [1, 2]]),
        "n": pa.array([Decimal(1)] * 4, pa.decimal128(5, 1)),
        "d": pa.array([date(2024, 1, 2)] * 4),
        "t": pa.array([datetime(2024, 1, 2)] * 4, pa.timestamp("us")),
    }
)


def test_columns_become_arrays_of_their_types_and_shapes() -> None:
    found = to_numpy(BATCH.slice(1, 2))
    assert found["i"].dtype == np.int32
    assert found["i"].tolist() == [2, 3]
    assert np.array_equal(found["x"], [np.nan, 3.0], equal_nan=True)
    assert found["b"].tolist() == [False, True]
    assert found["v"].tolist() == [[3, 4], [5, 6]]
    assert (found["m"].shape, found["m"].dtype) == ((2, 3, 2), np.int16)
    assert (found["s"], found["l"], found["n"]) == ([None, "c"], [[], None], [Decimal(1)] * 2)
    assert (found["d"][0], found["t"].dtype) == (np.datetime64("2024-01-02"), np.dtype("datetime64[us]"))


def test_memory_is_shared_read_only_if_there_are_no_nulls() -> None:
    found = to_numpy(BATCH)
    for name, values in (("i", BATCH["i"]), ("v", BATCH["v"].flatten())):
        assert found[name].ctypes.data == values.buffers()[1].address
        assert not found[name].flags.writeable


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None]),
        pa.array([True, None]),
        pa.array([[1, 2], None], PAIRS),
        pa.array([[1, None], [1, 2]], pa.list_(pa.int8(), 2)),
        pa.array([None, date(2024, 1, 1)]),
    ],
    ids=lambda column: str(column.type),
)
def test_nulls_in_types_without_nulls_are_rejected(column: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match=r"column c.*IS NOT NULL"):
        to_numpy(pa.record_batch({"c": column}))


def test_an_empty_batch_keeps_its_shapes() -> None:
    found = to_numpy(BATCH.slice(0, 0))
    assert (found["i"].shape, found["v"].shape, found["m"].shape, found["s"]) == ((0,), (0, 2), (0, 3, 2), [])


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    item = pa.field("item", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    bits = (np.array([1.5, -2.0, 0.5, 3.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    values = pa.Array.from_buffers(pa.binary(2), 4, [None, pa.py_buffer(bits.tobytes())])
    field = pa.field("z", pa.list_(item, 2))
    vectors = pa.FixedSizeListArray.from_arrays(values, type=field.type)
    table = ld.write_dataset(pa.table([vectors], schema=pa.schema([field])), tmp_path / "t.lance")
    (found,) = RowSelection.of(table).batches(2, form="numpy")
    assert (found["z"].dtype, found["z"].tolist()) == (np.float32, [[1.5, -2.0], [0.5, 3.0]])


def test_batches_are_returned_in_the_requested_form(tmp_path: Path) -> None:
    rows = RowSelection.of(ld.write_dataset(pa.table(BATCH.select(["i", "v"])), tmp_path / "t.lance"))
    (found,) = rows.shuffle(2).batches(10, form="numpy")
    assert sorted(found["i"].tolist()) == [1, 2, 3, 4]
    assert found["v"][:, 0].tolist() == [2 * each - 1 for each in found["i"]]


def test_jax_arrays_equal_numpy_arrays() -> None:
    jax = pytest.importorskip("jax")
    found = to_jax(BATCH)
    assert isinstance(found["v"], jax.Array)
    assert (found["v"].shape, found["x"].dtype, found["s"]) == ((4, 2), np.float32, ["a", None, "c", "d"])
    assert found["i"].tolist() == [1, 2, 3, 4]
