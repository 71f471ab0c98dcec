"""Repetition index of a miniblock page: which rows begin in which chunk.

offset | size | field (little-endian, for each chunk `depth` + 1 words, the first two of which are used)
0      | 8    | rows that end in the chunk
8      | 8    | values at its end that belong to a row which continues in the next chunk; 0 if none does
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.store.request import Bytes

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowIndex:
    """The rows of each chunk.

    Attributes:
        first_row: int64 (k + 1,), number of rows that begin before each chunk.
        continues: bool (k + 1,), whether each chunk begins within a row.
    """

    first_row: Int64s
    continues: NDArray[np.bool_]

    def chunk_of(self, rows: Int64s) -> Int64s:
        """Return the chunk in which each row begins."""
        chunk: Int64s = self.first_row.searchsorted(rows, side="right") - 1
        return chunk

    def chunk_end(self, rows: Int64s) -> Int64s:
        """Return, for each row, the first chunk without values of the rows before it."""
        chunk = np.minimum(self.first_row.searchsorted(rows, side="right") - 1, len(self.first_row) - 1)
        inside = (self.first_row[chunk] < rows) | self.continues[chunk]
        end: Int64s = np.minimum(chunk + inside, len(self.first_row) - 1)
        return end


def parse_rep_index(data: Bytes, depth: int, num_chunks: int, num_rows: int, where: str) -> RowIndex:
    """Parse the repetition index of a page.

    Raises:
        CorruptError: The index does not list each chunk, or does not add up to the rows of the page.
    """
    words = depth + 1
    if len(data) != 8 * words * num_chunks:
        expected = f"{8 * words * num_chunks} bytes for {num_chunks} chunks"
        raise CorruptError("repetition index", where=where, expected=expected, found=len(data))
    table = np.frombuffer(data.tobytes(), dtype="<u8").reshape(num_chunks, words)
    if len(table) and int(table[:, 0].max()) > num_rows:
        raise CorruptError(
            "repetition index", where=where, expected=f"<= {num_rows} rows", found=int(table[:, 0].max())
        )
    trailer = table[:, 1] > 0
    continues = np.zeros(num_chunks + 1, dtype=np.bool_)
    continues[1:] = trailer
    begins = table[:, 0].astype(np.int64) + trailer - continues[:-1]
    first_row = np.zeros(num_chunks + 1, dtype=np.int64)
    np.cumsum(begins, out=first_row[1:])
    if (len(begins) and int(begins.min()) < 0) or first_row[-1] != num_rows or continues[-1]:
        raise CorruptError("repetition index", where=where, expected=f"{num_rows} rows", found=int(first_row[-1]))
    return RowIndex(first_row, continues)
