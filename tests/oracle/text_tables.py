"""Write the character tables and stop words of `lance_duck/text/data` with pylance's `tokenize`.

    python -m oracle.text_tables [file …]      # from tests/

Stop words can only be found by testing single words. The candidates are the words already in the data, all words of up
to three Latin, Greek, Cyrillic or Arabic letters, and the words in the named files. Stop word lists of other projects
are good input files.
"""

# ruff: noqa: RUF001  letters that look alike are what this is about

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import lance

from lance_duck.text.parameters import LANGUAGES

DATA = Path(__file__).parents[2] / "lance_duck" / "text" / "data"
PLAIN: dict[str, Any] = {
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "max_token_length": None,
}
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
SEPARATORS = " \t\n\f\r"
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyzáàâäãåéèêëíìîïóòôöõőúùûüűçñßæøşğıășțţ",
    "".join(map(chr, range(0x3AC, 0x3CF))),
    "".join(map(chr, range(0x430, 0x452))),
    "".join(map(chr, range(0x621, 0x64B))),
)


def alphanumeric() -> str:
    """Return the character ranges that the tokenizer "simple" keeps."""
    ranges: list[list[int]] = []
    for token in lance.tokenize(" ".join(CHARACTERS), **PLAIN):
        code = ord(token.text)
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{first:04X} {last:04X}\n" for first, last in ranges)


def changes(step: str) -> str:
    """Return the characters that a step ("lower_case", "ascii_folding") changes, and what becomes of each."""
    characters = [character for character in CHARACTERS if character not in SEPARATORS]
    options = {**PLAIN, "base_tokenizer": "whitespace", step: True}
    tokens = [token.text for token in lance.tokenize(" ".join(characters), **options)]
    pairs = [(a, b) for a, b in zip(characters, tokens, strict=True) if a != b]
    return "".join(f"{ord(a):04X} {' '.join(f'{ord(c):04X}' for c in b)}\n" for a, b in pairs)


def stop_words(language: str, candidates: Iterable[str]) -> str:
    """Return the candidates without ASCII white space that are stop words of a language."""
    words = sorted(set(candidates))
    options = {**PLAIN, "base_tokenizer": "whitespace", "remove_stop_words": True, "language": language}
    kept = {token.text for token in lance.tokenize(" ".join(words), **options)}
    return "".join(f"{word}\n" for word in words if word not in kept)


def own_words() -> set[str]:
    """Return the stop words of all languages that the data have."""
    return {word for file in (DATA / "stop_words").glob("*.txt") for word in file.read_text("utf-8").split()}


def short_words() -> Iterator[str]:
    """Yield all words of up to three letters of one alphabet."""
    for alphabet in ALPHABETS:
        for size in (1, 2, 3):
            yield from map("".join, product(alphabet, repeat=size))


def write(files: Iterable[str]) -> None:
    """Write all files of the data."""
    candidates = own_words().union(short_words())
    for file in files:
        candidates.update(re.findall(r"[^\s\",\[\]{}]+", Path(file).read_text("utf-8").lower()))
    (DATA / "alphanumeric.txt").write_text(alphanumeric(), "utf-8")
    for step in ("lower_case", "ascii_folding"):
        (DATA / f"{step}.txt").write_text(changes(step), "utf-8")
    for language in LANGUAGES:
        (DATA / "stop_words" / f"{language.lower()}.txt").write_text(stop_words(language, candidates), "utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
