"""Reads the fields of requests that change tables: fields that must be there, words, and query strings.

A field or parameter with an unknown name is refused, because the client expects an effect of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import NotFoundError
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.fields import object_of, text_of, texts_of, whole_of, wrong_field


def needed_text(body: Mapping[str, Any], name: str) -> str:
    """Return a text. Raises RequestError if the field is missing or empty."""
    text = text_of(body, name)
    if not text:
        raise wrong_field(name, "a text that is not empty", text)
    return text


def needed_whole(body: Mapping[str, Any], name: str) -> int:
    """Return a whole number. Raises RequestError if the field is missing."""
    number = whole_of(body, name)
    if number is None:
        raise wrong_field(name, "a whole number", None)
    return number


def needed_texts(body: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts. Raises RequestError if the field is missing or empty."""
    texts = texts_of(body, name)
    if not texts:
        raise wrong_field(name, "a list of texts that is not empty", texts)
    return texts


def needed_objects(body: Mapping[str, Any], name: str, fields: Iterable[str]) -> list[dict[str, Any]]:
    """Return a list of objects that have no other fields than those named.

    Raises:
        RequestError: The field is missing or empty, or is no list of objects.
        WrongTypeError: An object has an unknown field.
    """
    objects = body.get(name)
    if not isinstance(objects, list) or not objects or not all(isinstance(each, dict) for each in objects):
        raise wrong_field(name, "a list of objects that is not empty", objects)
    for each in objects:
        refuse_unknown(each, [*fields], name, "field")
    return objects


def text_by_name(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return texts by name, or {} if the field is missing. Raises RequestError."""
    texts = object_of(body, name) or {}
    if not all(isinstance(text, str) for text in texts.values()):
        raise wrong_field(name, "an object of texts", texts)
    return texts


def word_of(values: Mapping[str, Any], name: str, words: Sequence[str]) -> str:
    """Return one of several words, without regard to case and "_". A missing field is the first word.

    Raises:
        RequestError: The field is another word.
    """
    found = text_of(values, name)
    if not found:
        return words[0]
    for word in words:
        if word.replace("_", "") == found.lower().replace("_", ""):
            return word
    raise wrong_field(name, " or ".join(words), found)


def check_parameters(request: HttpRequest, names: Iterable[str] = ()) -> None:
    """Check that the query string has no other fields than the delimiter, the branch and those named.

    Raises:
        WrongTypeError: A field is unknown.
    """
    refuse_unknown(request.parameters, ["delimiter", "branch", *names], "query string", "field")


def refuse_field(values: Mapping[str, Any], name: str, reason: str) -> None:
    """Refuse a field that is known but has no effect here, unless it is missing or empty.

    Raises:
        RequestError: The field has a value.
    """
    if values.get(name) not in (None, "", {}, [], "{}", False):
        raise RequestError(reason, where=name, remedy="leave it out")


@contextmanager
def missing_is_namespace() -> Iterator[None]:
    """Let a NotFoundError of the block say that a namespace is missing."""
    try:
        yield
    except NotFoundError:
        with about(Subject.NAMESPACE):
            raise
