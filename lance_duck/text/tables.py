"""Character tables: word characters, lower case, and ASCII folding.

They ship with this package, because Python's tables differ between versions. Each line of a file consists of
hexadecimal code points:

alphanumeric.txt   first and last of a range
lower_case.txt     a character, and its lower-case form
ascii_folding.txt  a character, and its ASCII replacement

`tests/oracle/text_tables.py` writes these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.tokens.cut import CODE_POINTS, ascii_sums

_T = TypeVar("_T", bound=np.generic)

WHITESPACE: Final = " \t\n\f\r"
"""Characters that separate tokens for the tokenizer "whitespace"."""


@cache
def alphanumeric() -> NDArray[np.uint8]:
    """Return 1 for each word character of the tokenizer "simple" (letters, their marks, numbers), otherwise 0."""
    members = np.zeros(CODE_POINTS, np.uint8)
    for first, last in _lines("alphanumeric.txt"):
        members[first : last + 1] = 1
    return _frozen(members)


@cache
def not_whitespace() -> NDArray[np.uint8]:
    """Return 1 for each word character of the tokenizer "whitespace", otherwise 0."""
    members = np.ones(CODE_POINTS, np.uint8)
    members[[ord(character) for character in WHITESPACE]] = 0
    return _frozen(members)


@cache
def alphanumeric_runs() -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return `alphanumeric` in the form that `cut_words` expects."""
    return alphanumeric(), _frozen(ascii_sums(alphanumeric()))


@cache
def not_whitespace_runs() -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return `not_whitespace` in the form that `cut_words` expects."""
    return not_whitespace(), _frozen(ascii_sums(not_whitespace()))


@cache
def lower_case() -> Mapping[int, str]:
    """Return the lower-case form of each character that has one, as a table for `str.translate`."""
    return _changes("lower_case.txt")


@cache
def ascii_folding() -> Mapping[int, str]:
    """Return the ASCII replacement of each folded character, as a table for `str.translate`."""
    return _changes("ascii_folding.txt")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, one of LANGUAGES."""
    text = files("lance_duck").joinpath("text", "data", "stop_words", f"{language.lower()}.txt")
    return frozenset(text.read_text(encoding="utf-8").split())


def _changes(name: str) -> Mapping[int, str]:
    return MappingProxyType({source: "".join(map(chr, target)) for source, *target in _lines(name)})


def _lines(name: str) -> list[list[int]]:
    text = files("lance_duck").joinpath("text", "data", name).read_text(encoding="ascii")
    return [[int(number, 16) for number in line.split()] for line in text.splitlines()]


def _frozen(array: NDArray[_T]) -> NDArray[_T]:
    array.flags.writeable = False
    return array
