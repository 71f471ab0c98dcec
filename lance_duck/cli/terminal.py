"""Text for people: lines on stdout and stderr, and consoles, without control characters.

A terminal obeys control characters: they set its title, clear it, or write to the clipboard. Names, cells and paths may
contain them, so whatever a command shows goes through `printable`. CSV and JSON are for programs, and are written by
`show` alone.
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
"""Escapes of the characters that a terminal obeys, or that change the order of a line."""


def printable(text: str) -> str:
    r"""Return a text with escapes such as `\x1b` in place of control characters, except line feeds and tabs."""
    return text if text.isprintable() else text.translate(ESCAPED)


class Console(console.Console):
    """A console of rich that shows control characters of what it prints as escapes."""

    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object; see `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def write_line(text: str = "") -> None:
    """Write a line for people to stdout."""
    print(printable(text))


def complain(message: Any) -> None:
    """Write a message of the command to stderr, after what stdout has so far."""
    sys.stdout.flush()
    print(f"lance-duck: {printable(str(message))}", file=sys.stderr)


def note(text: str) -> None:
    """Write a line that is neither a result nor a message to stderr."""
    print(printable(text), file=sys.stderr)
