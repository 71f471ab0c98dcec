"""List elements as separate texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import is_list
from lance_duck.text.texts import joined_texts


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of lists, row by row, in order.

    A null list does not yield elements, but a null in a list is an element.

    Attributes:
        texts: Text of each element.
        rows: Row of each element, int64.
        places: Index of each element in its lists, outermost first: one uint32 array per list level.
    """

    texts: pa.Array
    rows: NDArray[np.int64]
    places: tuple[NDArray[np.uint32], ...]


def elements_of(lists: pa.Array | pa.ChunkedArray) -> Elements:
    """Return the elements of lists of texts, at any depth. If the texts are not in lists, each is its own element."""
    array = joined_texts(lists)
    rows, places = np.arange(len(array)), tuple[NDArray[np.uint32], ...]()
    while is_list(array.type):
        sizes = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        parents = np.repeat(np.arange(len(array)), sizes)
        positions = np.arange(len(parents)) - (np.cumsum(sizes) - sizes)[parents]
        rows, places = rows[parents], (*(each[parents] for each in places), positions.astype(np.uint32))
        array = array.flatten()
    return Elements(array, rows, places)


def list_depth(type_: pa.DataType) -> int:
    """Return the number of list levels of a type."""
    depth = 0
    while is_list(type_):
        type_, depth = type_.value_type, depth + 1
    return depth
