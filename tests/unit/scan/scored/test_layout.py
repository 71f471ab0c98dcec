from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.scan.scored.layout import SCORE, score_layout

ROWS = pa.table(
    {
        "id": pa.array([1, 2]),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "j": pa.array(['{"a": 1}', "2"], pa.json_()),
        "tags": pa.array([["x"], []], pa.list_(pa.string())),
        "s": pa.array([{"x": 1}, None]),
    }
)


def test_an_empty_result_has_the_columns_of_a_result(tmp_path) -> None:
    table = ld.write_dataset(ROWS, tmp_path / "t.lance").handle.table
    columns: Any = {**{name: name for name in ROWS.column_names}, "more": "_score + id"}
    layout = score_layout(table.snapshot.schema, columns, with_row_id=True)
    some = layout.batch(table.taker, np.array([1], np.uint64), {SCORE: np.ones(1, np.float32)})
    none = layout.batch(table.taker, np.empty(0, np.uint64), {SCORE: np.empty(0, np.float32)})
    assert some.num_rows == 1
    assert none.num_rows == 0
    assert none.schema.equals(some.schema, check_metadata=True)
    none.validate(full=True)
