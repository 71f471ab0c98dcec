"""Locations in the rows of statements. A server may hide the folder of its tables.

Inside `places_below("/srv/data")`, statements return "trips.lance" in place of "/srv/data/trips.lance".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from lance_duck.redact import shown

_FOLDER: Final[ContextVar[str]] = ContextVar("lance_duck_hidden_folder", default="")


@contextmanager
def places_below(folder: str) -> Iterator[None]:
    """Let the statements of this thread return locations relative to a folder. "" changes nothing."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def shown_place(text: object) -> str:
    """Return a location, or a text with locations, for the rows of a statement. It has no secrets."""
    folder = _FOLDER.get()
    return without_folder(shown(text), folder) if folder else shown(text)


def without_folder(text: str, folder: str) -> str:
    """Return a text in which locations begin below a folder."""
    place = shown(folder).rstrip("/")
    return text.replace(f"{place}/", "").replace(place, "this server") if place else text
