from __future__ import annotations

import random
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.file.memory_file import MemorySink

from lance_duck.encoding.write.costs import FEW_VALUES
from lance_duck.file.costs import PAGE_BYTES
from lance_duck.file.write import writer as module
from lance_duck.file.write.few_rows import flat_columns
from lance_duck.file.write.writer import FileWriter, WrittenFile
from lance_duck.wire.schema_write import schema_from_arrow

INTEGERS = [
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("ns", "UTC"),
    pa.duration("ms"),
]
OTHERS = [pa.bool_(), pa.float32(), pa.float64(), pa.decimal128(20, 3), pa.decimal256(50, 3)]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
METADATA = [{}] * 6 + [{"lance-encoding:compression": "zstd"}, {"lance-encoding:structural-encoding": "fullzip"}]


def column(rng: random.Random, kind: pa.DataType, rows: int) -> pa.Array:
    """Return values of which some repeat, some are null, and some are preceded by other values in the same buffers."""
    distinct, nulls = rng.choice([1, 2, 100]), rng.choice([0, 0, 0.3, 1])
    numbers = [None if rng.random() < nulls else rng.randrange(distinct) for _ in range(rows + 1)]
    if kind in TEXTS:
        long = rng.choice([1, 1, 400])
        array = pa.array([None if n is None else f"{n} " * (n % 5 * long) for n in numbers], pa.string()).cast(kind)
    elif kind in OTHERS:
        array = pa.array([None if n is None else Decimal(n) if "decimal" in str(kind) else n for n in numbers])
        array = array.cast(kind) if array.type != pa.null() else pa.nulls(len(array), kind)
    else:
        array = pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64())
        array = array.cast(kind)
    array = array.slice(rng.randrange(2), rows)
    return pa.concat_arrays([array]) if rng.random() < 0.3 else array


def written(batch: pa.RecordBatch, version: str, page_bytes: int) -> tuple[WrittenFile, bytes | None]:
    sink = MemorySink()
    with FileWriter(sink, schema_from_arrow(batch.schema, version), version, page_bytes=page_bytes) as writer:
        writer.write(batch)
        return writer.finish(), sink.data


@given(st.randoms(use_true_random=False))
def test_a_file_of_few_rows_has_the_bytes_that_the_writers_of_columns_make(rng: random.Random) -> None:
    rows = rng.choice([1, 2, 10, FEW_VALUES, FEW_VALUES + 1])
    kinds = rng.choices([*INTEGERS, *OTHERS, *TEXTS], k=rng.randint(1, 4))
    arrays = [column(rng, kind, rows) for kind in kinds]
    fields = [
        pa.field(f"c{i}", array.type, bool(array.null_count) or rng.random() < 0.7, rng.choice(METADATA))
        for i, array in enumerate(arrays)
    ]
    batch = pa.record_batch(arrays, schema=pa.schema(fields))
    version, page_bytes = rng.choice(["2.1", "2.2"]), rng.choice([PAGE_BYTES, PAGE_BYTES, 300])
    with patch.object(module, "flat_columns", lambda *_: None):
        expected = written(batch, version, page_bytes)
    assert written(batch, version, page_bytes) == expected


@pytest.mark.parametrize(("rows", "opens"), [(1, False), (FEW_VALUES, False), (FEW_VALUES + 1, True)])
def test_only_a_file_of_more_rows_opens_writers_of_columns(rows: int, opens: bool) -> None:
    batch = pa.record_batch({"a": list(range(rows)), "b": ["x"] * rows})
    with patch.object(module, "open_v21_column", side_effect=AssertionError("opened")):
        if opens:
            with pytest.raises(AssertionError, match="opened"):
                written(batch, "2.2", PAGE_BYTES)
        else:
            assert written(batch, "2.2", PAGE_BYTES)[0].num_rows == rows


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.dictionary(pa.int8(), pa.string()), pa.null()]
)
def test_other_columns_are_not_flat(kind: pa.DataType) -> None:
    schema = schema_from_arrow(pa.schema({"a": pa.int8(), "b": kind}), "2.2")
    assert flat_columns(schema, "2.2") is None
