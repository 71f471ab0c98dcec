"""Tokens and roles.

token file     name:role:sha256     one token per line; role is "read" or "write", sha256 is hexadecimal; "#" begins
a comment
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from lance_duck.errors import InvalidInputError, NotFoundError

_LINE: Final = re.compile(r"(?P<name>[^:\s]+):(?P<role>read|write):(?P<digest>[0-9a-fA-F]{64})")


class Role(StrEnum):
    """What a caller may do."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Caller:
    """Who sends a request.

    Attributes:
        name: Name of the token, or "anyone" on a server without tokens.
        role: What the caller may do.
    """

    name: str
    role: Role


NOBODY: Final = Caller("nobody", Role.READ)
"""The caller of a page that needs no token, such as the login page."""


@dataclass(frozen=True)
class AccessToken:
    """A token that a server accepts.

    Attributes:
        caller: Name and role of callers with this token.
        digest: SHA-256 of the token, 32 bytes.
    """

    caller: Caller
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, role: Role, text: str) -> AccessToken:
        """Return the token with a text."""
        return cls(Caller(name, role), sha256(text.encode()).digest())


def read_tokens(path: str) -> tuple[AccessToken, ...]:
    """Read a token file.

    Raises:
        NotFoundError: The file does not exist.
        InvalidInputError: A line is malformed, a name occurs twice, or the file has no token.
    """
    try:
        lines = Path(path).read_text().splitlines()
    except FileNotFoundError:
        raise NotFoundError("no such token file", where=path) from None
    tokens: dict[str, AccessToken] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None or match["name"] in tokens:
            raise InvalidInputError(
                "malformed token" if match is None else "the name has a token already",
                where=f"{path}, line {number}",
                expected="name:role:sha256, with the role read or write",
            )
        tokens[match["name"]] = AccessToken(Caller(match["name"], Role(match["role"])), bytes.fromhex(match["digest"]))
    if not tokens:
        raise InvalidInputError("the token file has no token", where=path)
    return tuple(tokens.values())


def caller_of(text: str | None, tokens: Sequence[AccessToken]) -> Caller | None:
    """Return the caller with a token, or None if no token matches. The time does not depend on the token."""
    digest = sha256((text or "").encode(errors="surrogateescape")).digest()
    matching = [token.caller for token in tokens if hmac.compare_digest(token.digest, digest)]
    return matching[0] if matching and text else None
