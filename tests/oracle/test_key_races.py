"""Merges of this package and of pylance that insert one key at the same time: the later one never adds a second row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
NEGATIVE_NAN = np.array([0xFFF8 << 48], "u8").view("f8")
PAIRS = {
    "number": (pa.float64(), [1.5], [1.5]),
    "nan": (pa.float64(), [float("nan")], NEGATIVE_NAN),
    "nan reversed": (pa.float64(), NEGATIVE_NAN, [float("nan")]),
    "zero": (pa.float64(), [0.0], [-0.0]),
    "float": (pa.float32(), [-0.0], [0.0]),
    "half": (pa.float16(), np.array([float("nan")], np.float16), -np.array([float("nan")], np.float16)),
    "integer": (pa.int64(), [1], [1]),
    "short": (pa.int16(), [1], [1]),
    "text": (pa.string(), ["a"], ["a"]),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("with_text", [False, True])
@pytest.mark.parametrize("first", ["lance", "lance_duck"])
def test_the_later_merge_conflicts(tmp_path: Path, pair: str, with_text: bool, first: str) -> None:
    type_, one, two = PAIRS[pair]
    fields = [pa.field("k", type_, False, PRIMARY_KEY), pa.field("v", pa.int64())]
    fields += [pa.field("s", pa.string(), False, PRIMARY_KEY)] if with_text else []
    schema, on = pa.schema(fields), ["k", "s"] if with_text else ["k"]

    def rows(keys: Any, value: int) -> pa.Table:
        columns = [pa.array(keys, type_), pa.array([value]), pa.array(["x"])]
        return pa.Table.from_arrays(columns[: len(fields)], schema=schema)

    lance.write_dataset(rows(one, 0).slice(0, 0), tmp_path / "t.lance", schema=schema)
    handles = {"lance": lance.dataset(tmp_path / "t.lance"), "lance_duck": ld.dataset(tmp_path / "t.lance")}

    def merge(name: str, keys: Any, value: int) -> None:
        merge = handles[name].merge_insert(on).when_matched_update_all().when_not_matched_insert_all()
        merge.conflict_retries(0).execute(rows(keys, value))

    merge(first, one, 1)
    (second,) = handles.keys() - {first}
    with pytest.raises((OSError, ld.LanceDuckError), match=r"concurrent writers|preempted|concurrent commit|same key"):
        merge(second, two, 2)
    assert ld.dataset(tmp_path / "t.lance").to_table()["v"].to_pylist() == [1]
