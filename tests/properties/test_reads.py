"""Scans, takes, batches, limits and deletion masks agree with one another."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from oracle.compare import assert_tables_same
from properties.conditions import COLUMNS, conditions
from properties.sample import Sample

some_columns = st.lists(st.sampled_from(["n", *COLUMNS]), min_size=1, max_size=5, unique=True)
counts = st.integers(0, 600)


@given(data=st.data(), columns=some_columns)
def test_take_equals_the_scan_at_those_positions(table: Sample, data: st.DataObject, columns: list[str]) -> None:
    places = data.draw(st.lists(st.integers(0, table.rows.num_rows - 1), max_size=40))
    assert_tables_same(
        table.rows.select(columns).take(pa.array(places, pa.int64())), table.dataset.take(places, columns)
    )


@given(limit=counts, offset=counts, columns=some_columns)
def test_limit_and_offset_are_a_slice(table: Sample, limit: int, offset: int, columns: list[str]) -> None:
    found = table.dataset.to_table(columns, limit=limit, offset=offset)
    assert_tables_same(table.rows.select(columns).slice(offset, limit), found)


@given(cut=counts, columns=some_columns, condition=st.one_of(st.none(), conditions()))
def test_head_and_tail_add_up_to_the_whole_result(
    table: Sample, cut: int, columns: list[str], condition: tuple[str, object] | None
) -> None:
    text = condition[0] if condition else None
    whole = table.dataset.to_table(columns, filter=text)
    head = table.dataset.to_table(columns, filter=text, limit=cut)
    tail = table.dataset.to_table(columns, filter=text, offset=cut)
    assert_tables_same(whole, pa.concat_tables([head, tail]))


@given(
    size=st.integers(1, 300),
    strict=st.booleans(),
    condition=st.one_of(st.none(), conditions()),
    limit=st.none() | counts,
)
def test_the_batch_size_does_not_change_rows(
    table: Sample, size: int, strict: bool, condition: tuple[str, object] | None, limit: int | None
) -> None:
    text = condition[0] if condition else None
    scanner = table.dataset.scanner(filter=text, batch_size=size, strict_batch_size=strict, limit=limit)
    batches = list(scanner.to_batches())
    assert all(0 < b.num_rows <= size for b in batches)
    if strict:
        assert all(b.num_rows == size for b in batches[:-1])
    found = pa.Table.from_batches(batches, scanner.projected_schema)
    assert_tables_same(table.dataset.to_table(filter=text, limit=limit), found)


@given(columns=some_columns)
def test_only_deleted_rows_are_left_out(table: Sample, columns: list[str]) -> None:
    scan = table.dataset.scanner(columns=columns, with_row_id=True, include_deleted_rows=True).to_table()
    kept = scan.filter(scan["_rowid"].is_valid()).drop_columns(["_rowid"])
    assert_tables_same(table.rows.select(columns), kept)


@given(condition=conditions())
def test_filtering_by_row_id_finds_each_row(table: Sample, condition: tuple[str, object]) -> None:
    found = table.dataset.to_table(["n"], filter=condition[0], with_row_id=True)
    for n, row_id in list(zip(found["n"].to_pylist(), found["_rowid"].to_pylist(), strict=True))[:5]:
        assert table.dataset.to_table(["n"], filter=f"_rowid = {row_id}")["n"].to_pylist() == [n]


@given(columns=some_columns, condition=conditions())
def test_fragments_together_are_the_table(table: Sample, columns: list[str], condition: tuple[str, object]) -> None:
    parts = [f.to_table(columns=columns, filter=condition[0]) for f in table.dataset.get_fragments()]
    assert_tables_same(table.dataset.to_table(columns, filter=condition[0]), pa.concat_tables(parts))
