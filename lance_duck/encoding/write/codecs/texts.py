"""Chooses encodings for variable-length values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.fsst_train import SAMPLE, sample_values, train_on
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.write.costs import SYMBOL_BYTES, SYMBOL_LENGTH, WORTH
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.variable_encode import cut_variable


def text_codec(values: VariableWidth, choice: EncodingOptions) -> Variable | Fsst:
    """Return FSST with trained symbols if a sample becomes small enough, otherwise plain values."""
    plain = Variable(values.offsets.itemsize * 8)
    size = text_bytes(values)
    is_fsst_set = choice.compression == "fsst"
    if not is_fsst_set and (choice.compression or not choice.is_text or size < SYMBOL_BYTES):
        return plain
    if not size or (not is_fsst_set and int(np.diff(values.offsets).max()) < SYMBOL_LENGTH):
        return plain
    codec = Fsst.of_symbols(train_on(values), plain)
    saved = 1 - _share(codec, values)
    overhead = values.count * values.offsets.itemsize
    return codec if is_fsst_set or saved * size > (1 - WORTH) * (size + overhead) else plain


def text_share(values: VariableWidth, choice: EncodingOptions) -> float:
    """Estimate the compression ratio of the codec that `text_codec` picks: encoded size / plain size."""
    codec = text_codec(values, choice)
    return _share(codec, values) if isinstance(codec, Fsst) else 1.0


def text_bytes(values: VariableWidth) -> int:
    """Return the size of all values, in bytes."""
    return int(values.offsets[-1]) - int(values.offsets[0])


def _share(codec: Fsst, values: VariableWidth) -> float:
    """Return the compression ratio of a sample: encoded size / plain size."""
    sample = sample_values(values, 1, SAMPLE // 2)
    return len(codec.replace(sample).data) / max(1, len(sample.data))


def text_counts(values: VariableWidth, width: int, limit: int, max_values: int) -> NDArray[np.int64]:
    """Split values into chunks of about `limit` bytes, with offsets of `width` bytes, and return the value counts."""
    if not values.count:
        return np.zeros(1, np.int64)
    counts = np.empty(values.count, np.int64)
    chunks = cut_variable(readonly(values.offsets), width, limit, max_values, counts)
    return counts[:chunks].copy()
