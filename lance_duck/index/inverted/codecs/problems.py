"""Converts the status codes of kernels to errors for corrupt bytes."""

from __future__ import annotations

from lance_duck.errors import CorruptError
from lance_duck.kernels import status

_REMEDY = "drop the index and build it again"


def check_code(code: int, what: str, where: str, place: str) -> None:
    """Raise CorruptError unless a kernel reports success.

    Args:
        code: Status of the kernel.
        what: The data that the kernel read, for messages.
        where: Name of the file, for messages.
        place: The unit that the status counts, such as "term".
    """
    if code != status.OK:
        problem = status.text(code)
        raise CorruptError(f"{what}, {place} {code >> 8}: {problem}", where=where, remedy=_REMEDY)
