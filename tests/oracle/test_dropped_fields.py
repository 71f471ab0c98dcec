"""Fields dropped by us: pylance finds the structs and lists that stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld

INNER = pa.struct([("a", pa.int32())])
MORE = pa.struct([("k", pa.string())])


@pytest.mark.parametrize(
    ("type_", "more", "values", "path", "expected"),
    [
        (INNER, MORE, [{"a": 1}, None, {"a": None}, {"a": 4}], "c.a", [None, {"k": None}, {"k": None}]),
        (
            pa.list_(INNER),
            pa.list_(MORE),
            [[{"a": 1}] * 3, [{"a": 1}, None], None, []],
            "c.item.a",
            [[{"k": None}, None], None, []],
        ),
        (
            pa.list_(pa.struct([("s", INNER), ("b", pa.int8())])),
            pa.list_(pa.struct([("s", MORE)])),
            [[{"s": None, "b": 1}] * 2, [{"s": {"a": 1}, "b": 2}, None], [{"s": None, "b": 3}], None],
            "c.item.s.a",
            [[{"s": {"k": None}, "b": 2}, None], [{"s": None, "b": 3}], None],
        ),
    ],
)
def test_structs_and_lists_keep_their_shape_after_dropping_fields(
    tmp_path: Path, type_: pa.DataType, more: pa.DataType, values: list[Any], path: str, expected: list[Any]
) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(len(values)), "c": pa.array(values, type_)})
    lance.write_dataset(rows, uri, data_storage_version="2.2").add_columns(pa.schema([pa.field("c", more)]))
    ours = ld.dataset(uri)
    ours.delete("id = 0")
    ours.drop_columns([path])
    assert ours.to_table().column("c").to_pylist() == expected
    theirs = lance.dataset(uri)
    assert theirs.to_table().column("c").to_pylist() == expected
    theirs.optimize.compact_files()
    assert ld.dataset(uri).to_table().column("c").to_pylist() == expected
