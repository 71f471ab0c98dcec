from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.scan.costs import BURST, MORSEL_BYTES, MORSEL_ROWS, SMALL_BATCH_BYTES, SMALL_BATCH_ROWS
from lance_duck.scan.plan import Extent, Sizer, morsels_of
from lance_duck.scan.predicate.arrays import descend, keep, pick, row_width


def test_morsels_cover_the_extents() -> None:
    extents = [Extent(0, 5, 20_000), Extent(2, 0, 3), Extent(3, 0, 900_000, 7)]
    morsels = list(morsels_of(iter(extents), Sizer(8)))
    for extent in extents:
        mine = [m for m in morsels if m.index == extent.index]
        assert mine[0].start == extent.start
        assert mine[-1].stop == extent.stop
        assert [m.stop for m in mine[:-1]] == [m.start for m in mine[1:]]
        assert {m.row_offset for m in mine} == {extent.row_offset}


def test_the_first_morsel_is_small_and_sizes_grow_to_a_limit() -> None:
    sizer = Sizer(8)
    sizes = [sizer.take() for _ in range(5)]
    assert sizes[0] == SMALL_BATCH_ROWS
    assert sizes == sorted(sizes)
    assert sizes[-1] == MORSEL_ROWS


def test_wide_rows_make_small_morsels() -> None:
    sizer = Sizer(1 << 20)
    assert [sizer.take() for _ in range(4)] == [1, 4, 12, 12]


def test_a_width_that_was_learnt_counts() -> None:
    sizer = Sizer(1)
    sizer.observe(10, [_rows(10, 1 << 20)])
    sizer.take()
    assert sizer.take() <= 12


def test_filtered_morsels_grow_while_few_rows_match() -> None:
    sizer = Sizer(4096, filtered=8)
    sizes = [sizer.take() for _ in range(6)]
    assert sizes[0] == SMALL_BATCH_BYTES // 4096
    assert sizes[-1] == BURST * MORSEL_BYTES // 4096
    sizer.observe(1000, [_rows(1, 40)])
    assert sizer.take() == MORSEL_ROWS
    sizer.observe(1000, [_rows(900, 4096), _rows(100, 4096)])
    assert sizer.take() == MORSEL_BYTES // (4096 + 8)


def _rows(count: int, width: int) -> pa.RecordBatch:
    """Return rows with the given width in bytes."""
    return pa.record_batch({"bytes": pa.nulls(count, pa.binary(width)).fill_null(bytes(width))})


def test_morsels_are_multiples_of_the_batch_size() -> None:
    sizer = Sizer(8, rows=1000)
    assert [sizer.take() % 1000 for _ in range(5)] == [0] * 5
    assert Sizer(8, rows=1_000_000).take() == 1_000_000


def test_a_plan_is_built_lazily() -> None:
    def endless() -> object:
        yield Extent(0, 0, 10)
        raise AssertionError

    morsels = morsels_of(endless(), Sizer(1))  # type: ignore[arg-type]
    assert next(morsels) == Extent(0, 0, 10)


@pytest.mark.parametrize(
    "type_", [pa.string_view(), pa.string(), pa.binary_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_rows_of_every_type_can_be_selected(type_: pa.DataType) -> None:
    long = "a value of more than twelve bytes"
    values = ["a", None, long, "b"]
    array = pa.array(values).cast(pa.binary() if type_ == pa.binary_view() else pa.string())
    array = (array.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else array.cast(type_)).slice(1)
    picked = pick(array, pa.array([1, 0, 0, 2]).to_numpy())
    picked.validate(full=True)
    expected = [long, None, None, "b"]
    assert picked.cast(pa.string()).to_pylist() == expected
    kept = keep(array, pa.array([True, False, True]))
    kept.validate(full=True)
    assert kept.cast(pa.string()).to_pylist() == [None, "b"]


def test_descend_keeps_the_nulls_of_outer_structs() -> None:
    array = pa.array([{"a": {"b": 1}}, {"a": None}, None])
    assert descend(array, ("a", "b")).to_pylist() == [1, None, None]
    assert descend(array, ()) is array


def test_row_width_is_a_guess_from_the_type() -> None:
    assert row_width(pa.int64()) == 8
    assert row_width(pa.list_(pa.float32(), 128)) == 512
    assert row_width(pa.struct([("a", pa.int8()), ("b", pa.bool_())])) == 2
    assert row_width(pa.null()) == 0
    assert row_width(pa.list_(pa.int8())) > row_width(pa.int8())
    assert row_width(pa.map_(pa.string(), pa.int8())) > 0
    assert row_width(pa.dictionary(pa.int32(), pa.string())) == 4
