"""Trigrams of texts: three letters or digits in a row, in lower case and without accents.

Each character of a text is lower-cased separately and then folded to ASCII, so a substring stays a substring after
folding. Trigrams are numbered: digits are 1 … 10, letters 11 … 36, and a trigram is
(first * 37 + second) * 37 + third. Folding may produce capital letters: "™" does not have a lower-case form, and folds
to "TM". The rule for letters also applies to capital letters, modulo 256: "A" is 235.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.trigrams import BASE, BREAK, TRIGRAMS, group_by_trigram
from lance_duck.text.tables import ascii_folding, lower_case

_CODE_POINTS: Final = 0x110000
_DIGIT: Final = ord("0") - 1
_LETTER: Final = ord("a") - 11


@dataclass(frozen=True, eq=False)
class TextsByTrigram:
    """The texts that contain each trigram.

    Attributes:
        trigrams: uint32, ascending: the trigrams that occur.
        bounds: int64 (trigrams + 1,), start of each trigram's texts in `texts`, and the end of the last.
        texts: uint32, indices of texts, ascending for each trigram.
    """

    trigrams: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    texts: NDArray[np.uint32]


def texts_by_trigram(texts: pa.Array) -> TextsByTrigram:
    """Group texts by their trigrams. Nulls are skipped.

    Args:
        texts: string, large_string or string_view.
    """
    texts = texts.cast(pa.large_string())
    places, starts, classes = _tables()
    _, offsets, data = texts.buffers()
    begins = np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, np.int64)
    begins = readonly(begins[texts.offset : texts.offset + len(texts) + 1])
    content = readonly(np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))
    is_valid = readonly(texts.is_valid().to_numpy(zero_copy_only=False))
    counts, last = np.zeros(TRIGRAMS, np.int64), np.zeros(TRIGRAMS, np.uint32)
    tables = (content, begins, is_valid, places, starts, classes)
    check_status(group_by_trigram(*tables, last, counts, np.empty(0, np.uint32)), "trigrams", "text")
    trigrams = np.flatnonzero(counts)
    bounds = np.concatenate([[0], np.cumsum(counts[trigrams])])
    numbers = np.empty(int(bounds[-1]), np.uint32)
    if len(numbers):
        ends = np.cumsum(counts) - counts
        last[:] = 0
        check_status(group_by_trigram(*tables, last, ends, numbers), "trigrams", "text")
    return TextsByTrigram(trigrams.astype(np.uint32), bounds, numbers)


def trigrams_of(text: str) -> set[int]:
    """Return the trigrams of a text: the reference implementation."""
    result, run = set(), list[int]()
    for character in text:
        for each in classes_of(character):
            run = [*run[-2:], each] if each != BREAK else []
            if len(run) == 3:
                result.add((run[0] * BASE + run[1]) * BASE + run[2])
    return result


def classes_of(character: str) -> list[int]:
    """Return the classes of the characters that a character folds to. `BREAK` ends a run."""
    lower, folding = lower_case(), ascii_folding()
    folded = "".join(folding.get(ord(each), each) for each in lower.get(ord(character), character))
    return [_class(each) for each in folded]


def has_trigrams(texts: pa.Array, trigrams: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether each text contains all of the given distinct trigrams. False for nulls."""
    groups = texts_by_trigram(texts)
    present = np.flatnonzero(np.isin(groups.trigrams, trigrams))
    if len(present) < len(trigrams):
        return np.zeros(len(texts), np.bool_)
    counts = np.zeros(len(texts), np.int64)
    for place in present.tolist():
        counts[groups.texts[groups.bounds[place] : groups.bounds[place + 1]]] += 1
    return np.asarray(counts == len(trigrams))


def _class(character: str) -> int:
    if character.isascii() and character.isdigit():
        return ord(character) - _DIGIT
    if character.isascii() and character.isalpha():
        return (ord(character) - _LETTER) & 0xFF
    return BREAK


def _changed() -> Iterator[int]:
    """Yield the characters up to "z", and later ones that lower case or folding changes. The rest are `BREAK`."""
    yield from range(ord("z") + 1)
    yield from {point for point in (*lower_case(), *ascii_folding()) if point > ord("z")}


@cache
def _tables() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the list number of each character, the start of each list, and the classes of all lists in order."""
    places = np.zeros(_CODE_POINTS, np.uint16)
    numbers: dict[tuple[int, ...], int] = {(BREAK,): 0}
    for point in _changed():
        places[point] = numbers.setdefault(tuple(classes_of(chr(point))), len(numbers))
    starts = np.concatenate([[0], np.cumsum([len(each) for each in numbers])]).astype(np.int32)
    classes = np.array([each for one in numbers for each in one], np.int16)
    return readonly(places), readonly(starts), readonly(classes)
