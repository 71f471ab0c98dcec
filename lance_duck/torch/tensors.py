"""Batches as tensors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import torch

from lance_duck.errors import InvalidInputError
from lance_duck.loading.forms import numbers_of_column


def to_tensors(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a batch as tensors, by column.

    Fixed-size lists become matrices, fixed-shape tensors keep their shape, and times become integer ticks. Strings,
    variable-length lists and other types without numbers become lists of Python objects. A tensor shares the memory of
    its column only if that memory is not used elsewhere. You may therefore modify tensors.

    Raises:
        InvalidInputError: A column of integers, booleans, times or arrays contains a null.
    """
    return {field.name: _tensor(batch.column(place), field) for place, field in enumerate(batch.schema)}


def only_tensor_or_all(batch: pa.RecordBatch) -> Any:
    """Return the tensor of a single column, or a dict of tensors for several columns, like pylance.

    Converts like `to_tensors`, except that uint64 columns, such as row ids, become int64, because PyTorch supports few
    operations on uint64. uint64 vectors remain uint64.

    Raises:
        InvalidInputError: A column contains a null (see `to_tensors`), or a number of 2^63 or more.
    """
    tensors = {name: _signed(tensor, name) for name, tensor in to_tensors(batch).items()}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _signed(tensor: Any, name: str) -> Any:
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.uint64 or tensor.ndim != 1:
        return tensor
    signed = tensor.view(torch.int64)
    if signed.numel() and int(signed.min()) < 0:
        raise InvalidInputError(
            "torch cannot represent integers of 2^63 or more",
            where=f"column {name!r}",
            remedy="pass to_tensor_fn=to_tensors to keep uint64",
        )
    return signed


def _tensor(array: pa.Array, field: pa.Field) -> Any:
    numbers = numbers_of_column(array, field)
    if numbers is None:
        return array.to_pylist()
    if pa.types.is_boolean(numbers.values.type):
        return torch.from_numpy(numbers.values.to_numpy(zero_copy_only=False)).reshape(numbers.shape)
    memory = numbers.values.buffers()[1]
    is_shared = memory is not None and not memory.is_mutable  # later reads may use the same memory
    # `clone` of a tensor would wake torch's threads for each batch.
    values = torch.from_dlpack(numbers.values.to_numpy().copy() if is_shared else numbers.values)
    return (values.view(torch.bfloat16) if numbers.is_bfloat16 else values).reshape(numbers.shape)
