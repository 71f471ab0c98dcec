"""Arrow schema metadata from the C data interface: in order, with repeated names and extension keys.

int32 count, then for each pair: int32 length, name, int32 length, value; in the byte order of the machine
"""

from __future__ import annotations

import ctypes
from typing import ClassVar, Protocol

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


class Exporter(Protocol):
    """An Arrow schema, field or type with the C data interface."""

    def __arrow_c_schema__(self) -> object:
        """Return a capsule with a struct ArrowSchema."""


class _CSchema(ctypes.Structure):
    """Head of the struct ArrowSchema."""

    _fields_: ClassVar = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    ]


def metadata_pairs(exporter: Exporter) -> list[tuple[str, str]]:
    """Return the names and values of metadata in order. Includes repeated names, which pyarrow drops."""
    capsule = exporter.__arrow_c_schema__()
    at = _CSchema.from_address(_capsule_pointer(capsule, b"arrow_schema")).metadata
    if not at:
        return []
    count = ctypes.c_int32.from_address(at).value
    at += 4
    words: list[str] = []
    for _ in range(2 * count):
        size = ctypes.c_int32.from_address(at).value
        words.append(ctypes.string_at(at + 4, size).decode(errors="replace"))
        at += 4 + size
    return list(zip(words[::2], words[1::2], strict=True))
