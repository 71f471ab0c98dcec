"""Schemas and batches as Flight SQL drivers read them.

Go's driver reads no dictionaries after the start of a stream, and refuses messages of more than 16 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

_LARGEST: Final = 4 << 20
"""Maximum size of a batch, in bytes."""


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return a schema with values in place of dictionaries. An ENUM becomes strings."""
    fields = [field.with_type(_plain(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def small_batches(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a batch with the types of `without_dictionaries`, in parts of at most 4 MiB or of one row."""
    if batch.schema.types != schema.types:
        batch = batch.cast(schema)
    yield from _parts(batch)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _LARGEST or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), kind.item_field.with_type(_plain(kind.item_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind
