from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.file.memory_file import WrittenTable

from lance_duck.encoding.write.costs import FEW_BYTES, FEW_VALUES
from lance_duck.encoding.write.layouts import few_values, leaf

ITEMS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-3, 3),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=9),
    pa.large_binary(): st.binary(max_size=70),
    pa.decimal128(38, 0): st.integers(-(10**30), 10**30),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """A few values, nulls among them, bare or in lists."""
    kind = draw(st.sampled_from(list(ITEMS)))
    value = st.none() | ITEMS[kind]
    for _ in range(draw(st.integers(0, 2))):
        kind, value = pa.list_(kind), st.none() | st.lists(value, max_size=4)
    return pa.array(draw(st.lists(value, min_size=1, max_size=40)), kind)


@given(columns(), st.sampled_from(["2.1", "2.2"]))
def test_the_fast_encoder_writes_the_same_values_as_the_general_one(values: pa.Array, version: str) -> None:
    table = pa.table({"x": values})
    few = WrittenTable(table, version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf, "encode_few", lambda *_: None)
        general = WrittenTable(table, version)
    assert few.column("x").equals(general.column("x"))
    assert few.column("x").cast(values.type).equals(values)


@pytest.mark.parametrize(
    ("values", "metadata", "is_few"),
    [
        (list(range(FEW_VALUES)), {}, True),
        (list(range(FEW_VALUES + 1)), {}, False),
        (["x" * (FEW_BYTES - 5), *"abcde"], {}, True),
        (["x" * (FEW_BYTES - 5), *"abcdef"], {}, False),
        (["x" * 300, "y" * 300], {}, False),
        ([1, 2], {"lance-encoding:compression": "zstd"}, False),
        ([1, 2], {"lance-encoding:structural-encoding": "fullzip"}, False),
    ],
)
def test_small_arrays_use_the_fast_encoder(
    values: list[Any], metadata: dict[str, str], is_few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def encode(*given: Any) -> Any:
        found.append(few_values.encode_few(*given))
        return found[-1]

    monkeypatch.setattr(leaf, "encode_few", encode)
    column = pa.field("x", pa.array(values).type, metadata=metadata)
    written = WrittenTable(pa.table([values], schema=pa.schema([column])), "2.2")
    assert written.column("x").to_pylist() == values
    assert [page is not None for page in found] == [is_few]
