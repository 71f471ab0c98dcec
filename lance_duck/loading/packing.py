"""Sequences of fixed length, packed from lists of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, WrongTypeError

DOCUMENTS: Final = "document_ids"
POSITIONS: Final = "position_ids"


def packed_sequences(
    batches: Iterable[pa.RecordBatch], length: int, count: int, padding: int = 0
) -> Iterator[dict[str, NDArray[Any]]]:
    """Concatenate the lists of all rows, and cut them into sequences of one length.

    A list that does not fit continues in the next sequence. The last sequence is padded. Null lists are empty.

    Args:
        batches: Batches whose columns are lists of numbers, equally long in each row.
        length: Tokens of a sequence.
        count: Sequences of an item. The last item may have fewer.
        padding: Token after the last list.

    Yields:
        (sequences, length) arrays: the columns, `document_ids` (int32: the number of the list in its sequence, -1 for
        padding) and `position_ids` (int32: the position in the list's part that is in this sequence, 0 for padding).

    Raises:
        WrongTypeError: A column does not contain lists of numbers.
        InvalidInputError: Lists of a row differ in length, or contain a null.
    """
    waiting: dict[str, list[NDArray[Any]]] = {}
    size = rows = 0
    for batch in batches:
        lists = {name: _tokens(batch.column(name), name) for name in batch.schema.names}
        lengths = _common_lengths(lists)
        lists[DOCUMENTS] = np.repeat(np.arange(rows, rows + len(batch)), lengths), lengths
        rows += len(batch)
        for name, (tokens, _) in lists.items():
            waiting.setdefault(name, []).append(tokens)
        size += int(lengths.sum())
        if size >= length * count:
            joined = {name: np.concatenate(parts) for name, parts in waiting.items()}
            whole = size // (length * count) * length * count
            for start in range(0, whole, length * count):
                yield _item({name: each[start : start + length * count] for name, each in joined.items()}, length)
            waiting = {name: [each[whole:]] for name, each in joined.items()}
            size -= whole
    if size:
        joined = {name: np.concatenate(parts) for name, parts in waiting.items()}
        missing = -size % length
        fill = {name: -1 if name == DOCUMENTS else padding for name in joined}
        yield _item(
            {name: np.append(each, np.full(missing, fill[name], each.dtype)) for name, each in joined.items()}, length
        )


def _item(tokens: dict[str, NDArray[Any]], length: int) -> dict[str, NDArray[Any]]:
    """Return tokens as sequences, with the documents and positions of each sequence."""
    item = {name: each.reshape(-1, length) for name, each in tokens.items() if name != DOCUMENTS}
    rows = tokens[DOCUMENTS].reshape(-1, length)
    begins = np.zeros(rows.shape, bool)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    places = np.broadcast_to(np.arange(length), rows.shape)
    positions = places - np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    padding = rows < 0
    item[DOCUMENTS] = np.where(padding, -1, np.cumsum(begins, axis=1)).astype(np.int32)
    item[POSITIONS] = np.where(padding, 0, positions).astype(np.int32)
    return item


def _tokens(column: pa.Array, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the items of all lists of a column, and the length of each list."""
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
        raise WrongTypeError(f"column {name!r}", where="pack", expected="lists of numbers", found=kind)
    if name in (DOCUMENTS, POSITIONS):
        raise InvalidInputError(f"column {name!r}", where="pack", expected="another name", remedy="rename it")
    items = column.flatten()
    if items.null_count:
        raise InvalidInputError(f"column {name!r}", where="pack", expected="lists without nulls", found="a null")
    lengths = pa.compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return items.to_numpy(zero_copy_only=False), lengths.astype(np.int64)


def _common_lengths(lists: dict[str, tuple[NDArray[Any], NDArray[np.int64]]]) -> NDArray[np.int64]:
    (first, (_, lengths)), *others = lists.items()
    for name, (_, each) in others:
        if not np.array_equal(lengths, each):
            row = int(np.flatnonzero(lengths != each)[0])
            found = f"{lengths[row]} and {each[row]}"
            raise InvalidInputError(
                f"lists of {first!r} and {name!r}", where="pack", expected="equal lengths", found=found
            )
    return lengths
