"""Plans and sizes as people read them."""

from __future__ import annotations

import html
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


class PlanText(str):
    """A plan of several lines, which a notebook shows as such, without quotes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the lines as they are."""
        return f'<pre style="overflow-x: auto">{html.escape(self.rstrip())}</pre>'


def size_text(size: int) -> str:
    """Return a number of bytes as "512 B", or as "1.5 KiB" and so on, with one digit behind the point."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    if round(size / (1 << 10 * power), 1) == 1024 and power < len(_UNITS):
        power += 1
    return f"{size / (1 << 10 * power):,.1f} {_UNITS[power - 1]}"
