"""Decoding of repeated texts into a dictionary."""

from __future__ import annotations

import numpy as np

from lance_duck.arrow.memory import unset
from lance_duck.encoding.arrow.take import take
from lance_duck.encoding.block import Dictionary, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.dictionary_decode import MOST, ROOM, are_bytes, number_bytes, number_texts
from lance_duck.kernels.texts.variable import ascending_within


def dictionary_of_repeats(block: VariableWidth) -> Dictionary | None:
    """Return values as a dictionary of the distinct ones, in order of first use; None when there are many of these.

    Raises:
        CorruptError: Offsets do not ascend within the data.
    """
    offsets = block.offsets
    ends, data = readonly(offsets), readonly(block.data)
    if not ascending_within(ends, len(data)):
        raise CorruptError("offsets", where="texts", expected=f"ascending within {len(data)} bytes")
    places = unset(block.count, np.uint32)
    firsts = np.empty(MOST, np.int64)
    table = np.full(ROOM, -1, np.int32)
    if int(offsets[-1]) - int(offsets[0]) == block.count and are_bytes(ends):
        count = number_bytes(data, int(offsets[0]), places, firsts, table)
    else:
        count = number_texts(ends, data, places, firsts, table)
    return None if count < 0 else Dictionary(places, take(block, firsts[:count]))
