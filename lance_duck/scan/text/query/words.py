"""The words of a query, and their expansion to terms of a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lance_duck.scan.text.query.tree import CombinedFieldsQuery, MatchQuery, PhraseQuery, PrefixQuery
from lance_duck.text.analyser import Analyser

WordQuery = MatchQuery | PrefixQuery | PhraseQuery | CombinedFieldsQuery


@dataclass(frozen=True)
class Word:
    """An analysed word of a query.

    Attributes:
        term: The term that the analyser extracts from the word, in UTF-8, or None if the analyser removes the word.
        position: Position of the word in the query.
        edits: Maximum edit distance of similar terms that the word also matches.
        fixed: Number of leading characters that edits must not change.
        beginning: If not None, the word also matches all terms with this prefix, in UTF-8.
    """

    term: bytes | None
    position: int
    edits: int = 0
    fixed: int = 0
    beginning: bytes | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the word matches only its exact term."""
        return not self.edits and self.beginning is None


def query_words(query: WordQuery, analyser: Analyser) -> tuple[Word, ...]:
    """Return the words of a query, in order."""
    if isinstance(query, PrefixQuery):
        return _beginnings(query.query, analyser)
    words = [Word(token.text.encode(), token.position) for token in analyser.terms_of_query(query.query)]
    if isinstance(query, CombinedFieldsQuery):
        return tuple(
            {word.term: word for word in reversed(words)}[term] for term in dict.fromkeys(w.term for w in words)
        )
    if isinstance(query, MatchQuery) and query.fuzziness != 0:
        return tuple(replace(word, edits=_edits(word, query.fuzziness), fixed=query.prefix_length) for word in words)
    return tuple(words)


def limited(terms: Iterable[Sequence[bytes]], most: int | None) -> tuple[tuple[bytes, ...], ...]:
    """Return the terms of each word, cut after `most` terms in total."""
    result: list[tuple[bytes, ...]] = []
    for variants in terms:
        cut = tuple(variants if most is None else variants[:most])
        most = None if most is None else most - len(cut)
        result.append(cut)
    return tuple(result)


def _edits(word: Word, fuzziness: int | None) -> int:
    if fuzziness is not None:
        return fuzziness
    length = len(word.term or b"")
    return 0 if length <= 2 else 1 if length <= 5 else 2


def _beginnings(text: str, analyser: Analyser) -> tuple[Word, ...]:
    """Return words that match terms by prefix. Only case and accents are normalized."""
    plain = Analyser(replace(analyser.parameters, stem=False, remove_stop_words=False))
    terms = {token.position: token.text.encode() for token in analyser.terms_of_query(text)}
    return tuple(
        Word(terms.get(token.position), token.position, beginning=token.text.encode())
        for token in plain.terms_of_query(text)
    )
