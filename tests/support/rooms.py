"""The tests of a room: tests in its folders, and tests that import its modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"duck": ("sql",), "spark": ("spark",)}
"""Folders of tests/ that meet a room through the surface of the package."""


def check_room(room: str) -> None:
    """Raise UsageError if a room is named that does not exist."""
    rooms = sorted(
        path.stem
        for path in (ROOT / "lance_duck").iterdir()
        if path.suffix in ("", ".py") and not path.name.startswith("_")
    )
    if room and room not in rooms:
        raise pytest.UsageError(f"no room {room!r}: expected one of {', '.join(rooms)}")


def is_of_room(test: Path, room: str) -> bool:
    """Return whether a test module tests a room; the architecture tests every room."""
    tests = ROOT / "tests"
    folders = [tests / "unit" / room, *(tests / name for name in FOLDERS.get(room, ()))]
    if test.parent == tests or any(folder in test.parents for folder in folders):
        return True
    imports = rf"^\s*(from lance_duck\.{room}\b|import lance_duck\.{room}\b|from lance_duck import .*\b{room}\b)"
    return re.search(imports, test.read_text(encoding="utf-8"), re.MULTILINE) is not None
