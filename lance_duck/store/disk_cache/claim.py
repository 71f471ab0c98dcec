"""Which folders are caches. A cache folder belongs to one user, and contains the file CACHEDIR.TAG.

Signature: 8a477f597d28d172789f06886806bc55      backup programs skip the folder
# This folder is a cache of lance-duck.          other programs write something else here
"""

from __future__ import annotations

import os
import stat
from typing import Final

from lance_duck.errors import InvalidInputError
from lance_duck.store.base import temporary_name

MARKER: Final = "CACHEDIR.TAG"
_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55\n"
_TEXT: Final = _SIGNATURE + b"# This folder is a cache of lance-duck. It can be deleted at any time.\n"
_OWN: Final = b"cache of lance-duck"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def claim(folder: str) -> None:
    """Make a folder a cache, if it is missing or empty.

    Args:
        folder: Absolute path.

    Raises:
        InvalidInputError: The path is not a folder, or the folder belongs to somebody else or to other files.
        OSError: The disk failed.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise InvalidInputError("the cache is not a folder", where=folder)
    os.makedirs(folder, 0o700, exist_ok=True)
    found = os.stat(folder)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise InvalidInputError(
            "the cache folder belongs to another user", where=folder, remedy="choose a folder of your own"
        )
    others = [name for name in os.listdir(folder) if not name.startswith(MARKER)]
    if not is_cache(folder):  # looked at after the listing: another process may be claiming the folder
        if others:
            raise InvalidInputError(
                "the cache folder contains other files",
                where=folder,
                expected="a new or empty folder",
                found=repr(min(others)),
            )
        _mark(folder)
    if found.st_mode & _OTHERS:
        os.chmod(folder, 0o700)


def is_cache(folder: str) -> bool:
    """Return whether a folder is a cache. Raises OSError."""
    try:
        with open(os.path.join(folder, MARKER), "rb") as file:
            text = file.read(len(_TEXT))
    except FileNotFoundError:
        return False
    return text.startswith(_SIGNATURE) and _OWN in text


def _mark(folder: str) -> None:
    marker = os.path.join(folder, MARKER)
    temporary = temporary_name(marker)
    with open(temporary, "xb") as file:
        file.write(_TEXT)
        file.flush()
        os.fsync(file.fileno())  # without its text, a folder of blocks would be refused after a power failure
    os.replace(temporary, marker)
