"""Arrow strings in the form that analysers accept."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.errors import InvalidInputError


def joined_texts(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return texts as one array."""
    if not isinstance(texts, pa.ChunkedArray):
        return texts
    if texts.num_chunks == 1:
        return texts.chunk(0)
    return pa.concat_arrays([pa.nulls(0, texts.type), *texts.chunks])


def large_texts(texts: pa.Array) -> pa.LargeStringArray:
    """Convert texts of any string type to large_string.

    Raises:
        InvalidInputError: A text is not UTF-8.
    """
    try:
        large = texts if pa.types.is_large_string(texts.type) else texts.cast(pa.large_string())
        large.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("invalid strings", expected="UTF-8", found=str(error)) from error
    return large


def present_texts(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the texts that are not null."""
    return texts.drop_null() if texts.null_count else texts
