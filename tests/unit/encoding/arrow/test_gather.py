from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.arrow import limits
from lance_duck.encoding.arrow.gather import as_batches, combined, take_rows
from lance_duck.errors import ArrayLimitError


def narrow(*parts: list[str]) -> pa.ChunkedArray:
    """Chunks with a dictionary of 8-bit indices each."""
    kind = pa.dictionary(pa.int8(), pa.string())
    return pa.chunked_array([pa.array(part).dictionary_encode().cast(kind) for part in parts], kind)


@pytest.fixture
def table() -> pa.Table:
    """300 rows in three chunks, whose dictionaries do not go together."""
    texts = [[f"{part}-{i}" for i in range(100)] for part in "abc"]
    flat = narrow(*texts)
    nested = pa.chunked_array([pa.StructArray.from_arrays([chunk], ["d"]) for chunk in flat.chunks])
    return pa.table({"i": range(300), "d": flat, "s": nested})


def test_rows_are_taken_from_chunks_with_different_dictionaries(table: pa.Table) -> None:
    rows = np.random.default_rng(5).integers(0, 300, 500)
    taken = take_rows(table, rows)
    assert taken.schema == table.schema
    values = table.to_pylist()
    assert taken.to_pylist() == [values[row] for row in rows.tolist()]


def test_a_few_rows_from_different_dictionaries_form_one_chunk(table: pa.Table) -> None:
    taken = take_rows(table, np.array([299, 0, 150, 0]))
    assert taken.column("d").num_chunks == 1
    assert taken.column("d").to_pylist() == ["c-99", "a-0", "b-50", "a-0"]
    assert take_rows(table, np.empty(0, np.int64)).num_rows == 0


def test_repeated_rows_beyond_the_limit_are_taken_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"t": ["x" * 40, "y" * 40]})
    monkeypatch.setattr(limits, "MOST_BYTES", 100)
    taken = take_rows(table, np.array([1, 1, 0, 1, 1]))
    assert taken.column("t").to_pylist() == [("y" * 40), ("y" * 40), ("x" * 40), ("y" * 40), ("y" * 40)]
    assert max(map(len, taken.column("t").chunks)) == 2


def test_a_table_becomes_as_few_batches_as_possible(table: pa.Table) -> None:
    assert [batch.num_rows for batch in as_batches(table)] == [75, 75, 75, 75]
    assert combined(table).to_pylist() == table.to_pylist()
    assert [batch.num_rows for batch in as_batches(table.select(["i"]))] == [300]
    assert [batch.num_rows for batch in as_batches(table.slice(0, 0))] == [0]
    assert [batch.num_rows for batch in as_batches(table.select([]))] == [300]


def test_a_row_that_exceeds_the_array_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"t": pa.chunked_array([["x" * 40], ["y" * 400]])})
    monkeypatch.setattr(limits, "MOST_BYTES", 100)
    with pytest.raises(ArrayLimitError, match="at most 100 bytes"):
        take_rows(table, np.array([1, 0]))
