"""Paths to one value of a JSON document, as Lance and DuckDB write them.

    Lance    $.a.b  a.b  $."k.e"  $["k.e"]  $.items[0].id    stored in the details of an index
    DuckDB   $.a.b  $."k.e"  $.items[0].id  a                an operand of -> and ->>; without `$`, the text is one key

A path is a tuple of keys of objects (str) and positions in arrays (int). Paths with wildcards, positions from the end,
filters and escapes are not supported: their texts give None.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

JsonPath: TypeAlias = tuple[str | int, ...]

_POSITION: Final = r"\[(?P<position>0|[1-9]\d{0,8})\]"
_QUOTED: Final = r'"(?P<quoted>[^"\\\x00-\x1f]+)"'
_LANCE: Final = re.compile(rf'\.(?P<key>[^\W\d]\w*)|\.{_QUOTED}|\["(?P<subscript>[^"\\\x00-\x1f]+)"\]|{_POSITION}')
_DUCKDB: Final = re.compile(rf"\.(?P<key>[\w-]+)|\.{_QUOTED}|{_POSITION}")
_START: Final = re.compile(r"[^\W\d]")
_PLAIN: Final = re.compile(r"[^\W\d]\w*")
_KEY: Final = re.compile(r'[^"\\\x00-\x1f/$*][^"\\\x00-\x1f]*')


def stored_path(text: str) -> JsonPath | None:
    """Read a path as Lance writes it. Returns None if it is not supported."""
    if text == "":
        return ()
    if _START.match(text):
        return _steps(f".{text}", _LANCE)
    return _steps(text[1:], _LANCE) if text[0] == "$" else None


def duckdb_path(text: str) -> JsonPath | None:
    """Read a path as DuckDB writes it. A text without `$` is one key. Returns None if it is not supported."""
    if text.startswith("$"):
        return _steps(text[1:], _DUCKDB)
    return (text,) if _KEY.fullmatch(text) else None


def shown_path(path: JsonPath) -> str:
    """Return the shortest text that Lance and DuckDB both read as this path."""
    return "$" + "".join(map(_shown, path))


def _shown(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f'."{step}"'


def _steps(text: str, step: re.Pattern[str]) -> JsonPath | None:
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = step.match(text, at)
        if match is None:
            return None
        name = str(match.lastgroup)
        steps.append(int(match[name]) if name == "position" else match[name])
        at = match.end()
    return tuple(steps)
