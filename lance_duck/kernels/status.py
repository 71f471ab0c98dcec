"""The status of a kernel: 0, or a code in the low byte, and in the bits above, the index of the bad chunk or value."""

from __future__ import annotations

from typing import Final

from lance_duck.errors import CorruptError

OK: Final = 0
TOO_SHORT: Final = 1
BAD_WIDTH: Final = 2
BAD_OFFSETS: Final = 3
BAD_RUNS: Final = 4
BAD_CODE: Final = 5
BAD_MATCH: Final = 6
BAD_LENGTH: Final = 7
TRAILING: Final = 8
BAD_VALUE: Final = 9

_TEXT: Final = {
    TOO_SHORT: "the buffer is too short for its values",
    BAD_WIDTH: "a bit width is wider than its word",
    BAD_OFFSETS: "offsets do not ascend, or exceed their buffer",
    BAD_RUNS: "the runs do not add up to the number of values",
    BAD_CODE: "a code has no symbol",
    BAD_MATCH: "a match reaches before the start of the output",
    BAD_LENGTH: "the decompressed length is not the one claimed",
    TRAILING: "bytes are left after the last field",
    BAD_VALUE: "a value is out of order or out of range",
}


def text(status: int) -> str:
    """Return the meaning of a status, for messages."""
    return _TEXT[status & 0xFF]


def check_status(status: int, encoding: str, place: str = "chunk") -> None:
    """Raise CorruptError unless `status` is OK."""
    if status != OK:
        raise CorruptError(text(status), where=f"{encoding} encoding, {place} {status >> 8}")
