"""Growth of pages of texts that repeat far apart, so that they share one dictionary."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.arrow.types import has_offsets
from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.write.blocks import array_to_block
from lance_duck.encoding.write.codecs.dictionary import expected_distinct, sample_places
from lance_duck.file.write.pending_rows import values_bytes


def come_again(arrays: list[pa.Array], worth: int) -> bool:
    """Return whether texts repeat, by a sample, and the distinct ones take at least about `worth` bytes.

    Args:
        arrays: Arrays of one type, one after the other.
        worth: Bytes of distinct texts from which on storing them once pays.
    """
    if not arrays or not has_offsets(arrays[0].type):
        return False
    chunked = pa.chunked_array([array for array in arrays if len(array)], arrays[0].type)
    count = len(chunked)
    size = sum(values_bytes(array) for array in arrays)
    places = sample_places(count)
    if places is None:
        return False
    sample = chunked.take(pa.array(places)).drop_null().combine_chunks()
    if not len(sample):
        return False
    block = array_to_block(sample, "sample")
    assert isinstance(block, VariableWidth)
    distinct = expected_distinct(block)
    return distinct is not None and min(distinct, count) * (size / count) >= worth
