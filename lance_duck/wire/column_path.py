"""Column paths as strings: names separated by dots. Names with a dot or backtick are quoted in backticks."""

from __future__ import annotations

from collections.abc import Iterable

from lance_duck.errors import InvalidInputError


def split_path(path: str) -> list[str]:
    """Split a dotted path into names. A name in backticks may contain dots, and doubled backticks.

    Raises:
        InvalidInputError: A backtick is not closed, or a name is empty.
    """
    names: list[str] = []
    at = 0
    while at <= len(path):
        if path[at : at + 1] == "`":
            name, at = _read_quoted(path, at + 1)
        else:
            end = path.find(".", at)
            end = len(path) if end < 0 else end
            name, at = path[at:end], end
        if not name or path[at : at + 1] not in ("", "."):
            raise InvalidInputError("bad column path", where=repr(path), expected="names separated by dots")
        names.append(name)
        at += 1
    return names


def join_path(names: Iterable[str]) -> str:
    """Return the dotted path of names, the inverse of `split_path`."""
    return ".".join(map(quoted_name, names))


def quoted_name(name: str) -> str:
    """Return a name as one step of a dotted path, in backticks if necessary."""
    plain = name and "." not in name and "`" not in name
    return name if plain else "`" + name.replace("`", "``") + "`"


def _read_quoted(path: str, at: int) -> tuple[str, int]:
    name = ""
    while True:
        end = path.find("`", at)
        if end < 0:
            raise InvalidInputError("a backtick in the column path is not closed", where=repr(path))
        name += path[at:end]
        if path[end + 1 : end + 2] != "`":
            return name, end + 1
        name, at = name + "`", end + 2
