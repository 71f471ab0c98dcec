from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.encoding.arrow.dictionary_union import DictionaryUnion, has_narrow_dictionary
from lance_duck.errors import ArrayLimitError


def batch(numbers: range, index: pa.DataType | None = None, used: int | None = None) -> pa.RecordBatch:
    """Rows that use the first `used` entries of a dictionary."""
    entries = pa.array([f"entry {number}" for number in numbers])
    places = pa.array(range(len(entries) if used is None else used), index or pa.int8())
    array = pa.DictionaryArray.from_arrays(places, entries)
    return pa.record_batch({"s": pa.StructArray.from_arrays([array], ["d"])})


def test_the_union_accepts_entries_up_to_the_largest_index() -> None:
    union = DictionaryUnion()
    for numbers in (range(100), range(50, 127), range(100)):
        rows = batch(numbers)
        assert union.add(rows) is rows
    with pytest.raises(ArrayLimitError, match=r"column 's\.d': .*expected at most 127 entries .*found 128"):
        union.add(batch(range(127, 128)))
    union.add(batch(range(20, 120)))


def test_one_dictionary_may_use_every_index() -> None:
    union = DictionaryUnion()
    union.add(batch(range(128)))
    union.add(batch(range(128), used=5))
    with pytest.raises(ArrayLimitError):
        union.add(batch(range(1, 128)))


def test_unused_entries_are_dropped_only_if_needed_to_fit() -> None:
    union = DictionaryUnion()
    union.add(batch(range(100)))
    rows = batch(range(100, 200), used=27)
    added = union.add(rows)
    assert added.column("s").field("d").dictionary.to_pylist() == [f"entry {i}" for i in range(100, 127)]
    assert added.to_pylist() == rows.to_pylist()


def test_a_union_that_does_not_fit_adds_nothing() -> None:
    union, other = DictionaryUnion(), DictionaryUnion()
    union.add(batch(range(100)))
    other.add(batch(range(90, 190)))
    with pytest.raises(ArrayLimitError):
        union.join(other)
    union.add(batch(range(100, 127)))


@pytest.mark.parametrize(
    ("index", "is_narrow"),
    [(pa.int8(), True), (pa.uint8(), True), (pa.int16(), True), (pa.uint16(), True), (pa.int32(), False)],
    ids=str,
)
def test_only_dictionaries_with_narrow_indices_are_limited(index: pa.DataType, is_narrow: bool) -> None:
    kind = pa.dictionary(index, pa.string())
    for type_ in (kind, pa.list_(kind), pa.struct([("d", kind)]), pa.map_(pa.string(), kind), pa.list_(kind, 2)):
        assert has_narrow_dictionary(type_) is is_narrow
