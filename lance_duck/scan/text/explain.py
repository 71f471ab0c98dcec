"""Text descriptions of planned full-text searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lance_duck.redact import shown
from lance_duck.scan import explain as scans
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.text.indexed import BrokenSegmentError, segment_rows
from lance_duck.scan.text.query.tree import BooleanQuery, BoostQuery, FullTextQuery, Occur
from lance_duck.scan.text.query.words import Word
from lance_duck.scan.text.route import TextRoute
from lance_duck.scan.text.search import Key, Leaf, TextSearch, leaves_of
from lance_duck.text.parameters import AnalyserParameters

_DEFAULTS = AnalyserParameters()
_MOST_TERMS: Final = 16
"""Maximum number of query terms listed in a description."""


def explain_text_search(
    search: TextSearch, options: ScanOptions, columns: Sequence[str], *, verbose: bool = False
) -> Iterator[str]:
    """Yield the lines that describe a search. A prefilter is described as the scan that comes first."""
    snapshot = search.table.snapshot
    yield f"LanceFullText: uri={shown(snapshot.uri)}, {scans.version_of(snapshot)}"
    yield from scans.of_log(snapshot)
    yield f"  columns: {', '.join(columns)}"
    yield from (f"  {line}" for line in _tree(search.query, search.words))
    for key, route in search.routes.items():
        yield from _route(search, key, route)
    yield from scans.after_search(search.post, options)
    yield from scans.before_search(search.table, search.named, verbose=verbose)


def describe_analyser(parameters: AnalyserParameters) -> str:
    """Describe an analyser: base tokenizer, language, and parameters that differ from the defaults."""
    pairs = {
        name: value
        for name, value in vars(parameters).items()
        if value != getattr(_DEFAULTS, name)
        and name not in ("base_tokenizer", "language", "with_position", "block_size")
    }
    rest = "".join(f", {name}={value!r}" for name, value in pairs.items())
    return f"{parameters.base_tokenizer}, {parameters.language}{rest}"


def _tree(query: FullTextQuery, words: Mapping[Leaf, Sequence[Word]], label: str = "query") -> Iterator[str]:
    """Yield a line for each word query in a tree, indented by depth.

    Args:
        query: The tree.
        words: The words of each word query. Analysers remove stop words and punctuation.
        label: The role of the query.
    """
    if isinstance(query, BooleanQuery):
        yield f"{label}: BooleanQuery"
        for occur, each in query.queries:
            yield from (f"  {line}" for line in _tree(each, words, occur.value))
    elif isinstance(query, BoostQuery):
        yield f"{label}: BoostQuery, negative_boost {query.negative_boost:g}"
        yield from (f"  {line}" for line in _tree(query.positive, words, "positive"))
        yield from (f"  {line}" for line in _tree(query.negative, words, "negative"))
    else:
        yield f"{label}: {query}"
        if not any(words[leaf] for leaf in leaves_of(query)):
            what = "the BooleanQuery" if label == Occur.MUST.value else "it"
            yield f"  the analyser removes all of its words, so {what} matches no row"


def _terms(search: TextSearch, key: Key, route: TextRoute) -> Iterator[str]:
    """Yield the words of a query with the number of indexed documents that contain them."""
    words = [word for leaf, leaf_words in search.words.items() if key in search.keys_of(leaf) for word in leaf_words]
    try:
        places = [place for each in route.segments for place in segment_rows(search.table.snapshot, each)]
        terms = dict.fromkeys(word.term for word in words if word.term is not None)
        totals = dict.fromkeys(terms, 0)
        for place in places:
            for term, count in place.frequencies(terms).items():
                totals[term] += count
        documents = sum(place.num_documents for place in places)
    except BrokenSegmentError:
        return  # the search will skip the segment
    edits = {word.term: word.edits for word in words}
    listed = [f"{term.decode()}{_edits(edits[term])} in {totals[term]}" for term in list(terms)[:_MOST_TERMS]]
    more = f" and {len(terms) - _MOST_TERMS} more" if len(terms) > _MOST_TERMS else ""
    yield f"    terms: {', '.join(listed) or 'none'}{more}, of {documents} documents in the index"


def _edits(edits: int) -> str:
    """Return the suffix that shows a word's maximum edit distance, as in `duck~1`."""
    return f"~{edits}" if edits else ""


def _route(search: TextSearch, key: Key, route: TextRoute) -> Iterator[str]:
    total = len(search.table.snapshot.fragments)
    yield f"  column {route.column.path}: analyser {describe_analyser(route.analyser.parameters)}"
    if route.segments:
        names = ", ".join(str(segment.uuid)[:8] for segment in route.segments[:8])
        more = f" and {len(route.segments) - 8} more" if len(route.segments) > 8 else ""
        yield f"    InvertedIndexQuery: {route.name} (segments {names}{more})"
        yield from _terms(search, key, route)
    yield from (f"    without an index: {reason}" for reason in route.reasons)
    what = "left out" if search.fast else "searched flat"
    rows = sum(fragment.num_rows for fragment in search.table.snapshot.fragments if fragment.id in route.open)
    yield f"    fragments: {total - len(route.open)} through the index, {len(route.open)} {what} ({rows} rows)"
