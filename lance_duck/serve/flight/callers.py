"""Finds the caller of a Flight request.

authorization: Bearer TOKEN              the token
authorization: Basic BASE64(USER:TOKEN)  the token as the password. The answer has the header for later requests.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final

from pyarrow import flight

from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.refusals import UnauthorizedError
from lance_duck.serve.gate.tokens import Caller

MIDDLEWARE: Final = "lance_duck_caller"


class FlightCaller(flight.ServerMiddleware):  # type: ignore[misc]
    """The caller of one request.

    Attributes:
        caller: Who sends the request.
    """

    def __init__(self, caller: Caller, token: str | None) -> None:
        self.caller = caller
        self._token = token

    def sending_headers(self) -> Mapping[str, str]:
        """Return the header that a client repeats after it has sent a password."""
        return {} if self._token is None else {"authorization": f"Bearer {self._token}"}


class FlightCallers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Checks the token of each request."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]) -> FlightCaller:
        """Return the caller. Raises FlightUnauthenticatedError."""
        given = next((texts[0] for name, texts in headers.items() if name.lower() == "authorization" and texts), "")
        scheme, _, text = str(given).partition(" ")
        is_basic = scheme.lower() == "basic"
        token = _password(text) if is_basic else text.strip() if scheme.lower() == "bearer" else None
        try:
            return FlightCaller(self._gate.caller(token), (token or "anyone") if is_basic else None)
        except UnauthorizedError as error:
            reason = str(error)
        raise flight.FlightUnauthenticatedError(reason)


class OpenHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Accepts each handshake. `FlightCallers` checks the header of the same request."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Do nothing."""

    def is_valid(self, token: bytes) -> bytes:
        """Return an empty name."""
        return b""


def _password(text: str) -> str | None:
    try:
        padded = text.strip() + "=" * (-len(text.strip()) % 4)  # Go's drivers leave the padding out
        return base64.b64decode(padded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None
