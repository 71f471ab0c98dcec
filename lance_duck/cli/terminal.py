"""Text for people: lines on stdout and stderr, and rich consoles, without control characters.

Terminals interpret control characters: they can set the title, clear the screen, or write to the clipboard. Names,
cells and paths may contain them. Commands therefore print through `printable`. CSV and JSON are for programs, and only
`show` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

from rich import console
from rich.segment import Segment

_HARMLESS: Final = frozenset({0x09, 0x0A})
_CONTROLS: Final = {*range(0x20), *range(0x7F, 0xA0)} - _HARMLESS
_BIDI: Final = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_LINE_ENDS: Final = {0x2028, 0x2029}
_SURROGATES: Final = range(0xD800, 0xE000)
ESCAPED: Final = {
    **{point: f"\\x{point:02x}" for point in _CONTROLS},
    **{point: f"\\u{point:04x}" for point in (*_BIDI, *_LINE_ENDS, *_SURROGATES)},
}
"""Escapes of characters that a terminal interprets or that reorder a line."""


def printable(text: str) -> str:
    r"""Escape control characters, as in `\x1b`, except line feeds and tabs."""
    return text if text.isprintable() else text.translate(ESCAPED)


class Console(console.Console):
    """A rich console that prints control characters as escapes."""

    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object. See `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def write_line(text: str = "") -> None:
    """Write a line for people to stdout."""
    print(printable(text))


def complain(message: Any) -> None:
    """Flush stdout, then write an error message of the command to stderr."""
    sys.stdout.flush()
    print(f"lance-duck: {printable(str(message))}", file=sys.stderr)


def note(text: str) -> None:
    """Write a line to stderr that is neither a result nor an error message."""
    print(printable(text), file=sys.stderr)
