"""Reads the fields of a JSON body, with checked types. A field that is missing or null is None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.request import HttpRequest

LARGEST: Final = 2**63 - 1
"""Largest number that a field may have."""


def flag_of(body: Mapping[str, Any], name: str) -> bool | None:
    """Return a field that is true or false. Raises RequestError."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise wrong_field(name, "true or false", value)


def whole_of(body: Mapping[str, Any], name: str, least: int = 0) -> int | None:
    """Return a field that is a whole number of at least `least`. Raises RequestError."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise wrong_field(name, f"a whole number from {least} to {LARGEST}", value)
    return value


def float_of(body: Mapping[str, Any], name: str) -> float | None:
    """Return a field that is a number. Raises RequestError."""
    value = body.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and (number := float(value)) == number:
            return number
    except OverflowError:
        pass
    raise wrong_field(name, "a number", value)


def text_of(body: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a text. Raises RequestError."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise wrong_field(name, "a text", value)


def texts_of(body: Mapping[str, Any], name: str) -> list[str] | None:
    """Return a field that is a list of texts. Raises RequestError."""
    value = body.get(name)
    if value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return value
    raise wrong_field(name, "a list of texts", value)


def object_of(body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a field that is an object. Raises RequestError."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise wrong_field(name, "an object", value)


def parameter_flag(request: HttpRequest, name: str, default: bool = False) -> bool:
    """Return a field of the query string that is "true" or "false". Raises RequestError."""
    text = request.parameters.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise wrong_field(name, "true or false", text)
    return text == "true" if text else default


def most_listed(request: HttpRequest, body: Mapping[str, Any]) -> int | None:
    """Return the field `limit` of a listing, from the query string or from the body. Raises RequestError."""
    text = request.parameters.get("limit")
    if not text:
        return whole_of(body, "limit", 1)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise wrong_field("limit", "a whole number from 1 on", text)
    return int(text)


def wrong_field(name: str, expected: str, found: object) -> RequestError:
    """Return the error for a field with a wrong value."""
    return RequestError("wrong field", where=name, expected=expected, found=repr(found)[:200])
