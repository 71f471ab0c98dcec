"""Arrow texts as analysers take them."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.errors import InvalidInputError


def joined_texts(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one array of the chunks."""
    if not isinstance(texts, pa.ChunkedArray):
        return texts
    if texts.num_chunks == 1:
        return texts.chunk(0)
    return pa.concat_arrays([pa.nulls(0, texts.type), *texts.chunks])


def sound_texts(texts: pa.Array) -> pa.LargeStringArray:
    """Return the texts that are not null, valid UTF-8."""
    try:
        large = texts if pa.types.is_large_string(texts.type) else texts.cast(pa.large_string())
        large = large.drop_null() if large.null_count else large
        large.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("bad texts", where="analyse", expected="UTF-8", found=str(error)) from error
    return large
