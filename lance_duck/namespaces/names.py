"""Names of tables and namespaces: `("a", "b", "t")`, or "a$b$t"; the root is `()`, "" or "$"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lance_duck.errors import InvalidInputError

DELIMITER: Final = "$"
NAMESPACE: Final = "namespace"
TABLE: Final = "table"

Name = str | Sequence[str]

_NAME: Final = re.compile(r"[A-Za-z0-9_\-.]+")


def name_parts(name: Name) -> tuple[str, ...]:
    """Return the parts of a name.

    Raises:
        InvalidInputError: No text or sequence of texts, or a part is empty.
    """
    if isinstance(name, str):
        parts = () if name in ("", DELIMITER) else tuple(name.split(DELIMITER))
    elif all(isinstance(part, str) for part in name):
        parts = tuple(name)
    else:
        raise InvalidInputError("invalid name", expected="a string, or a list of strings", found=name)
    if not all(parts):
        raise InvalidInputError("the name has an empty part", found=object_id(parts))
    return parts


def object_id(parts: Sequence[str]) -> str:
    """Return a name as one text, which is its object id."""
    return DELIMITER.join(parts)


def check_new(parts: Sequence[str], kind: str) -> None:
    """Refuse a new name that not all readers of namespaces find.

    Raises:
        InvalidInputError: The root, or a part with other characters than letters of ASCII, digits, "_", "-" and ".".
    """
    if not parts:
        raise InvalidInputError(f"the root is not a {kind} that can be created or removed")
    for part in parts:
        if not _NAME.fullmatch(part) or set(part) == {"."}:
            raise InvalidInputError(
                f"invalid {kind} name",
                expected='ASCII letters, digits, "_", "-" and "."',
                found=repr(part),
            )
