"""Computes the trigrams that substring conditions imply, for searches of n-gram indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lance_duck import lazy
from lance_duck.scan.predicate.tree import HasTrigrams, Path, Predicate, any_of
from lance_duck.text.patterns import Parts, glob_parts, like_parts, regex_parts

if TYPE_CHECKING:
    from lance_duck.text import contains
else:
    contains = lazy.modules(globals(), "lance_duck.text", "contains")

CONTAINS: Final = "contains"
LIKE: Final = "like"
GLOB: Final = "glob"
REGEX: Final = "regex"
TOKENS: Final = "tokens"


def implied_by_text(
    path: Path, how: str, pattern: str, *, escape: str = "", any_case: bool = False
) -> Predicate | None:
    """Return a predicate that is true for each string that matches a pattern: `HasTrigrams`, or several joined by OR.

    Args:
        path: The column.
        how: CONTAINS (also for prefixes, suffixes and equality), LIKE, GLOB, REGEX (RE2 syntax), or TOKENS (the words
            of `contains_tokens`).
        pattern: The substring, pattern or words of the condition.
        escape: The escape character for LIKE, or "".
        any_case: Whether the condition ignores case, or compares the string in upper or lower case.

    Returns:
        The predicate, or None if the pattern does not imply any trigram.
    """
    parts = _PARTS[how](pattern, escape, any_case)
    words = parts.words()
    return None if words is None else any_of(*(HasTrigrams(path, each) for each in words))


_PARTS: Final[Mapping[str, Callable[[str, str, bool], Parts]]] = MappingProxyType(
    {
        CONTAINS: lambda pattern, _, any_case: Parts(((pattern,),), any_case),
        LIKE: lambda pattern, escape, any_case: Parts((like_parts(pattern, escape),), any_case),
        GLOB: lambda pattern, _, any_case: Parts((glob_parts(pattern),), any_case),
        TOKENS: lambda pattern, _, any_case: Parts((contains.written_words(pattern),), any_case),
        REGEX: lambda pattern, _, any_case: regex_parts(pattern, any_case=any_case),
    }
)
