"""Converts UUIDs between strings and the 16 bytes of `arrow.uuid`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.errors import InvalidInputError

UUID: Final = "arrow.uuid"
BYTES: Final = pa.binary(16)
_LENGTH: Final = 36
_HYPHENS: Final = (8, 13, 18, 23)
_DIGITS: Final = np.array([i for i in range(_LENGTH) if i not in _HYPHENS])
_BAD: Final = 16
_VALUES: Final = np.full(256, _BAD, np.uint8)
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_SPELLED: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


def uuids_from_texts(texts: pa.Array) -> pa.Array:
    """Parse hyphenated UUID strings of any string type into an array of `arrow.uuid`.

    Raises:
        InvalidInputError: A string is not a UUID.
    """
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    valid_texts = texts.drop_null().cast(pa.large_string())
    lengths = pc.binary_length(valid_texts).to_numpy(zero_copy_only=False)
    if (lengths != _LENGTH).any():
        raise _no_uuid(valid_texts, int((lengths != _LENGTH).argmax()))
    start = int(np.frombuffer(valid_texts.buffers()[1], np.int64)[valid_texts.offset]) if len(valid_texts) else 0
    data = np.frombuffer(valid_texts.buffers()[2] or b"", np.uint8)[start:][: len(valid_texts) * _LENGTH]
    letters = data.reshape(len(valid_texts), _LENGTH)
    digits = _VALUES[letters[:, _DIGITS]]
    wrong = (digits == _BAD).any(axis=1) | (letters[:, list(_HYPHENS)] != ord("-")).any(axis=1)
    if wrong.any():
        raise _no_uuid(valid_texts, int(wrong.argmax()))
    result = np.zeros((len(texts), 16), np.uint8)
    result[valid] = digits[:, 0::2] << 4 | digits[:, 1::2]
    validity = pa.array(valid).buffers()[1] if texts.null_count else None
    storage = pa.Array.from_buffers(BYTES, len(texts), [validity, pa.py_buffer(result)])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def texts_from_uuids(uuids: pa.Array) -> pa.Array:
    """Format 16-byte UUIDs as strings, in lower case and with hyphens."""
    storage = uuids.storage if isinstance(uuids, pa.ExtensionArray) else uuids
    rows = len(storage)
    data = (
        np.frombuffer(storage.buffers()[1], np.uint8)[16 * storage.offset :][: 16 * rows]
        if rows
        else np.empty(0, np.uint8)
    )
    data = data.reshape(rows, 16)
    letters = np.full((rows, _LENGTH), ord("-"), np.uint8)
    letters[:, _DIGITS[0::2]] = _SPELLED[data >> 4]
    letters[:, _DIGITS[1::2]] = _SPELLED[data & 15]
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * _LENGTH)
    validity = pa.array(storage.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if storage.null_count else None
    return pa.Array.from_buffers(pa.large_string(), rows, [validity, offsets, pa.py_buffer(letters)])


def _no_uuid(texts: pa.Array, row: int) -> InvalidInputError:
    return InvalidInputError("not a UUID", expected="such as 12345678-1234-5678-1234-567812345678", found=texts[row])
