"""Tokens are packed into sequences of one length, and items are transformed in threads in order."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.loading.packing import packed_sequences
from lance_duck.loading.threads import mapped


def batch(**columns: Any) -> pa.RecordBatch:
    kinds = pa.list_(pa.int32())
    return pa.record_batch({name: pa.array(lists, kinds) for name, lists in columns.items()})


def test_sequences_have_documents_and_positions() -> None:
    (first, last) = packed_sequences([batch(t=[[1, 2, 3], [4]]), batch(t=[None, [], [5, 6, 7]])], 4, 1, padding=9)
    assert {name: array.tolist() for name, array in first.items()} == {
        "t": [[1, 2, 3, 4]],
        "document_ids": [[0, 0, 0, 1]],
        "position_ids": [[0, 1, 2, 0]],
    }
    assert {name: array.tolist() for name, array in last.items()} == {
        "t": [[5, 6, 7, 9]],
        "document_ids": [[0, 0, 0, -1]],
        "position_ids": [[0, 1, 2, 0]],
    }
    assert (first["t"].dtype, first["position_ids"].dtype) == (np.int32, np.int32)


LISTS = st.lists(st.lists(st.integers(0, 99), max_size=7), max_size=12)


@given(LISTS, st.integers(1, 5), st.integers(1, 3), st.integers(1, 4))
def test_packing_equals_a_plain_reference(lists: list[list[int]], length: int, count: int, rows: int) -> None:
    batches = [batch(t=lists[i : i + rows], w=lists[i : i + rows]) for i in range(0, len(lists), rows)]
    items = list(packed_sequences(batches, length, count, padding=-7))
    tokens = [(row, token) for row, each in enumerate(lists) for token in each]
    sequences = [tokens[start : start + length] for start in range(0, len(tokens), length)]
    assert [len(item["t"]) for item in items[:-1]] == [count] * (len(items) - 1)
    found = [
        (item["t"][i], item["document_ids"][i], item["position_ids"][i])
        for item in items
        for i in range(len(item["t"]))
    ]
    assert len(found) == len(sequences)
    for sequence, (values, documents, positions) in zip(sequences, found, strict=True):
        padding = length - len(sequence)
        rows_here = [row for row, _ in sequence]
        order = list(dict.fromkeys(rows_here))
        assert values.tolist() == [token for _, token in sequence] + [-7] * padding
        assert documents.tolist() == [order.index(row) for row in rows_here] + [-1] * padding
        assert positions.tolist() == [rows_here[:i].count(row) for i, row in enumerate(rows_here)] + [0] * padding
    assert all(np.array_equal(item["t"], item["w"]) for item in items)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"t": pa.array([[1, None]])}, "'t': expected lists without nulls"),
        ({"t": pa.array([1])}, "'t': expected lists of numbers, found int64"),
        ({"t": pa.array([["a"]])}, "expected lists of numbers"),
        ({"position_ids": pa.array([[1]])}, "'position_ids': expected another name"),
        ({"t": pa.array([[1]]), "u": pa.array([[1, 2]])}, "'t' and 'u': expected equal lengths, found 1 and 2"),
    ],
)
def test_columns_that_cannot_be_packed_are_rejected(columns: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        list(packed_sequences([pa.record_batch(columns)], 4, 1))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_items_are_transformed_in_order(threads: int) -> None:
    assert list(mapped(lambda x: x * 2, range(20), threads)) == [x * 2 for x in range(20)]
    results = mapped(lambda x: 6 // x, [3, 2, 0, 1], threads)
    assert [next(results), next(results)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_few_items_are_ahead() -> None:
    taken: list[int] = []
    results = mapped(lambda x: x, (taken.append(i) or i for i in range(100)), 2)  # type: ignore[func-returns-value]
    assert next(results) == 0
    assert len(taken) == 5
    results.close()  # type: ignore[attr-defined]


def test_transforms_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(mapped(lambda _: both.wait(), range(2), 2))) == 2
