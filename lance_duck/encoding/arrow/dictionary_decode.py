"""Repeated texts decoded into a dictionary array."""

from __future__ import annotations

import numpy as np

from lance_duck.encoding.arrow.take import take
from lance_duck.encoding.block import Dictionary, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.dictionary_decode import MOST, ROOM, number_texts


def as_dictionary(block: VariableWidth) -> Dictionary | None:
    """Return the same values as places among the distinct ones, in order of first use; None when those are many.

    Raises:
        CorruptError: Offsets do not ascend within the data.
    """
    offsets = block.offsets
    if offsets[0] < 0 or offsets[-1] > len(block.data) or np.any(offsets[1:] < offsets[:-1]):
        raise CorruptError("offsets", where="texts", expected=f"ascending within {len(block.data)} bytes")
    places = np.empty(block.count, np.uint32)
    firsts = np.empty(MOST, np.int64)
    table = np.full(ROOM, -1, np.int32)
    count = number_texts(readonly(offsets), readonly(block.data), places, firsts, table)
    return None if count < 0 else Dictionary(places, take(block, firsts[:count]))
