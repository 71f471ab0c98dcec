"""Words and trigrams that occur in every text with a given substring.

Searches use only trigrams that every matching text is certain to contain, regardless of the index's writer:

- Beyond ASCII, only Latin letters with accents are used (U+00C0 to U+017F). Writers' tables differ for other
  characters, such as the old letters "ĸ" and "ŉ".
- If case is ignored, only ASCII letters and digits are used, and an "i" ends a word, because the text may contain "İ"
  instead, which trigrams treat as an "i" and a dot that is not a letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.text.tables import ascii_folding, lower_case
from lance_duck.text.trigrams import trigrams_of

LEAST: Final = 3
"""Minimum length of a word with a trigram, in characters."""

_LATIN: Final = frozenset(map(chr, range(0xC0, 0x180))) - {"ĸ", "ŉ"}
_END: Final = " "


def certain_words(part: str, *, any_case: bool = False) -> tuple[str, ...]:
    """Return words (a to z and digits) that occur in the lower-cased and folded form of every text with a substring.

    Args:
        part: The substring that the texts contain.
        any_case: Whether case is ignored, character by character.

    Returns:
        Words of at least `LEAST` characters. Empty if the substring is too short for a trigram.
    """
    folded = "".join(_in_any_case(each) if any_case else _folded(each) for each in part)
    return tuple(dict.fromkeys(word for word in folded.split(_END) if len(word) >= LEAST))


def trigrams_of_words(words: Iterable[str]) -> NDArray[np.uint32]:
    """Return the trigrams of words, ascending."""
    return np.array(sorted(set().union(*map(trigrams_of, words))), np.uint32)


def _folded(character: str) -> str:
    """Return the letters and digits that a character folds to. All other characters end a word."""
    if not character.isascii() and character not in _LATIN:
        return _END
    lower, folding = lower_case(), ascii_folding()
    folded = (folding.get(ord(each), each) for each in lower.get(ord(character), character))
    return "".join(each if each.isascii() and each.isalnum() else _END for each in "".join(folded))


def _in_any_case(character: str) -> str:
    if not (character.isascii() and character.isalnum()):
        return _END
    return "i" + _END if character in "iI" else character.lower()
