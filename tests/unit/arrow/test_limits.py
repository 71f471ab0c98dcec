from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.arrow import limits
from lance_duck.arrow.limits import check_limit, in_halves
from lance_duck.errors import ArrayLimitError

TEXTS = pa.array(["x" * 30, None, "y" * 30, ""])
ENDS = pa.array([0, 1, 2, 3, 4], pa.int32())


@pytest.mark.parametrize(
    "array",
    [
        TEXTS,
        TEXTS.cast(pa.binary()),
        pa.StructArray.from_arrays([TEXTS], ["s"]),
        pa.ListArray.from_arrays(ENDS, TEXTS),
        pa.LargeListArray.from_arrays(ENDS.cast(pa.int64()), TEXTS),
        pa.MapArray.from_arrays(ENDS, pa.array(range(4)), TEXTS),
        pa.FixedSizeListArray.from_arrays(TEXTS, 1),
        TEXTS.dictionary_encode(),
        pa.array([[1] * 30, [2] * 30], pa.list_(pa.int8())),
        pa.ExtensionArray.from_storage(pa.json_(), TEXTS.fill_null("").cast(pa.string())),
    ],
    ids=lambda array: str(array.type)[:30],
)
def test_more_than_an_array_can_hold_is_found_at_any_depth(monkeypatch: pytest.MonkeyPatch, array: pa.Array) -> None:
    assert check_limit(array) is array
    monkeypatch.setattr(limits, "MOST_BYTES", 59)
    with pytest.raises(ArrayLimitError, match=r"expected at most 59 bytes or items.*found 60; read fewer rows"):
        check_limit(array)
    if not pa.types.is_dictionary(array.type):
        assert check_limit(array.slice(1, 1)).to_pylist() == array.slice(1, 1).to_pylist()


def test_types_with_wide_offsets_are_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 5)
    for array in (TEXTS.cast(pa.large_string()), pa.array([[1] * 30], pa.large_list(pa.int8()))):
        assert check_limit(array) is array


def test_rows_are_read_in_halves_until_they_fit() -> None:
    asked = []

    def read(start: int, stop: int) -> list[int]:
        asked.append((start, stop))
        if stop - start > 3:
            raise ArrayLimitError("too many rows")
        return list(range(start, stop))

    assert in_halves(read, 2, 9) == [2, 3, 4, 5, 6, 7, 8]
    assert asked == [(2, 9), (2, 5), (5, 9), (5, 7), (7, 9)]


def test_a_row_that_exceeds_the_limit_is_rejected() -> None:
    def read(start: int, stop: int) -> list[int]:
        if start <= 3 < stop:
            raise ArrayLimitError("row 3")
        return []

    with pytest.raises(ArrayLimitError, match="row 3"):
        in_halves(read, 0, 10)
