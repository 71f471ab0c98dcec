"""Names of tables and namespaces: `("a", "b", "t")` or "a$b$t". The root is `()`, "" or "$"."""

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
        InvalidInputError: The name is neither a string nor a sequence of strings, or a part is empty.
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
    """Return a name as one string, which is its object id."""
    return DELIMITER.join(parts)


def check_new(parts: Sequence[str], kind: str) -> None:
    """Reject a new name that some namespace readers cannot find.

    Raises:
        InvalidInputError: The name is the root, or a part contains characters other than ASCII letters, digits, "_",
            "-" and ".".
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
