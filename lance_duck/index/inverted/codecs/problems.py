"""What is wrong with bytes, by the status of a kernel."""

from __future__ import annotations

from lance_duck.errors import CorruptError
from lance_duck.kernels import status

_REMEDY = "drop the index and build it again"


def check_code(code: int, what: str, where: str, place: str) -> None:
    """Raise CorruptError unless a kernel reports that all is well.

    Args:
        code: Status of the kernel.
        what: Whatever it read.
        where: File.
        place: Kind of the place that the status counts.
    """
    if code != status.OK:
        problem = status.text(code)
        raise CorruptError(f"{what}, {place} {code >> 8}: {problem}", where=where, remedy=_REMEDY)
