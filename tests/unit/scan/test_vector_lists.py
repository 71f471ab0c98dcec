"""Errors of searches and indexes over lists name the cast that makes vectors of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import LanceDuckError

CAST = 'ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32(), 3)})'
Ask = Callable[[ld.LanceDataset], Any]
DOORS: dict[str, Ask] = {
    "search": lambda ds: ds.search([1.0, 2.0, 3.0], k=1),
    "search of a column": lambda ds: ds.search([1.0, 2.0, 3.0], k=1, column="v"),
    "nearest": lambda ds: ds.to_table(nearest={"column": "v", "q": [1.0, 2.0, 3.0]}),
    "scanner": lambda ds: ds.scanner(nearest={"column": "v", "q": [1.0, 2.0, 3.0]}),
    "index": lambda ds: ds.create_index("v", "IVF_FLAT", num_partitions=1),
}


def table_of(folder: Path, values: list[Any], type_: pa.DataType, **settings: Any) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"v": pa.array(values, type_)}), folder / "t.lance", **settings)


def message_of(ask: Ask, ds: ld.LanceDataset) -> str:
    with pytest.raises(LanceDuckError) as caught:
        ask(ds)
    return str(caught.value)


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("item", [pa.float32(), pa.float64()], ids=str)
def test_the_cast_is_named_with_the_length_and_works(ask: Ask, item: pa.DataType, tmp_path: Path) -> None:
    values = [None, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] * 100
    ds = table_of(tmp_path, values, pa.list_(item), max_rows_per_file=120)
    assert CAST in message_of(ask, ds)
    eval(CAST, {"ds": ds, "pa": pa})
    ask(ds)


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_lists_of_different_lengths_are_reported_by_row(ask: Ask, tmp_path: Path) -> None:
    ds = table_of(tmp_path, [None, [1.0, 2.0], [3.0, 4.0], [5.0]], pa.list_(pa.float32()), max_rows_per_file=2)
    message = message_of(ask, ds)
    assert "column 'v' differ in length: row 1 has 2, row 3 has 1" in message
    assert "alter_columns" not in message


@pytest.mark.parametrize(
    ("values", "type_", "form"),
    [
        ([[np.float16(1), np.float16(2)]], pa.list_(pa.float16()), "pa.list_(pa.float16(), 2)"),
        ([[1, 2]], pa.large_list(pa.int64()), "pa.list_(pa.float32(), 2)"),
        ([[1, 2]], pa.list_(pa.uint8()), "pa.list_(pa.uint8(), 2)"),
        ([None], pa.list_(pa.float32()), "pa.list_(pa.float32(), length)"),
        ([], pa.list_(pa.float32()), "pa.list_(pa.float32(), length)"),
    ],
    ids=str,
)
def test_the_type_of_the_cast(values: list[Any], type_: pa.DataType, form: str, tmp_path: Path) -> None:
    assert form in message_of(DOORS["nearest"], table_of(tmp_path, values, type_))


def test_other_columns_do_not_suggest_a_cast(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [["a"]], pa.list_(pa.string()))
    for ask in DOORS.values():
        assert "alter_columns" not in message_of(ask, ds)


def test_lists_in_structs_are_reported_by_path(tmp_path: Path) -> None:
    ds = ld.write_dataset(pa.table({"s": [{"n": 1, "v": [1.0, 2.0]}, None]}), tmp_path / "t.lance")
    with pytest.raises(LanceDuckError, match=r'"path": "s\.v", "data_type": pa\.list_\(pa\.float32\(\), 2\)'):
        ds.to_table(nearest={"column": "s.v", "q": [1.0, 2.0]})


def test_each_list_column_of_a_table_is_reported(tmp_path: Path) -> None:
    rows = pa.table({"a": [[1.0]], "my b": [[1.0, 2.0]], "c": [["x"]]})
    ds = ld.write_dataset(rows, tmp_path / "t.lance")
    message = message_of(lambda ds: ds.search([1.0]), ds)
    assert '"path": "a", "data_type": pa.list_(pa.float32(), 1)' in message
    assert '"path": "my b", "data_type": pa.list_(pa.float32(), 2)' in message
    assert 'ALTER COLUMN "my b" TYPE FLOAT[2]' in message
    assert '"c"' not in message
