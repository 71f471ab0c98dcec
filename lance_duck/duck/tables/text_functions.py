"""The functions behind `match`, `score`, `highlight` and `snippet`. DuckDB calls them with batches of strings.

    __lance_match([text, …], request, words, values) → BOOLEAN, NULL without a text or without words
    __lance_score([text, …], request, words, values) → FLOAT, 0 without a match
    __lance_highlight([text, …], request, words, values, pre, post) → VARCHAR[]
    __lance_snippet([text, …], request, words, values, pre, post, number of words, gap) → VARCHAR[]

The last two return NULL if a text or an argument is NULL.

The texts do not have to come from a table. Each text is scored as if it were stored in the requested table, with the
column's analyser and the statistics of the newest version. An empty request selects the default analyser. It is only
valid for `__lance_highlight` and `__lance_snippet`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import NotFoundError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery
from lance_duck.scan.text.route import text_route
from lance_duck.scan.text.search import TextSearch
from lance_duck.scan.text.text_matcher import TextMatcher
from lance_duck.text.analyser import Analyser
from lance_duck.text.highlight import highlight, snippet
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.phrases import targets_of

MATCHES: Final = "__lance_match"
SCORES: Final = "__lance_score"
HIGHLIGHTS: Final = "__lance_highlight"
SNIPPETS: Final = "__lance_snippet"
_TYPES: Final[list[Any]] = ["VARCHAR[]", "VARCHAR", "VARCHAR", "VARCHAR"]
_MARKED_TYPES: Final[list[Any]] = [*_TYPES, "VARCHAR", "VARCHAR"]
_MARKED: Any = "VARCHAR[]"
_SPECIAL: Any = "special"
_ARROW: Any = "arrow"
_KEPT: Final = 64
"""Maximum number of cached queries and transaction datasets, to limit memory. A statement uses fewer."""

Open = Callable[[str, Mapping[str, str]], LanceDataset]
Scores = NDArray[np.float32]


class TextFunctions:
    """The full-text functions of a database, with a cache of recent queries. Thread-safe.

    Args:
        open_table: Returns the dataset with a name or path, at the version that the arguments request.
    """

    def __init__(self, open_table: Open) -> None:
        self._open = open_table
        self._requests: LruCache[TextRequest] = LruCache(_KEPT)
        self._matchers: LruCache[TextMatcher] = LruCache(_KEPT)
        self._held: LruCache[LanceDataset] = LruCache(_KEPT)
        self._numbers = count(1)

    def let_go(self) -> None:
        """Forget all tables and texts."""
        for cache in (self._requests, self._matchers, self._held):
            cache.drop_where(lambda _: True)

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Register the functions with the connection's database instance, which must not have them yet."""
        for name, function, kind in ((MATCHES, self.match, "BOOLEAN"), (SCORES, self.score, "FLOAT")):
            connection.create_function(name, function, _TYPES, kind, type=_ARROW, null_handling=_SPECIAL)

        snippets = [*_MARKED_TYPES, "BIGINT", "VARCHAR"]
        for name, marks, types in ((HIGHLIGHTS, self.highlight, _MARKED_TYPES), (SNIPPETS, self.snippet, snippets)):
            connection.create_function(name, marks, types, _MARKED, type=_ARROW, null_handling=_SPECIAL)

    def uninstall(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Remove the functions."""
        for name in (MATCHES, SCORES, HIGHLIGHTS, SNIPPETS):
            connection.remove_function(name)

    def hold(self, dataset: LanceDataset) -> int:
        """Assign a number to a transaction's dataset, because table names cannot refer to it."""
        known = self._held.key_of(dataset)
        if isinstance(known, int):
            return known
        number = next(self._numbers)
        self._held.put(number, dataset)
        return number

    def match(self, texts: Any, requests: Any, words: Any, values: Any) -> pa.Array:
        """Return whether texts match. The arguments are Arrow arrays."""
        scores, known = self._asked(texts, requests, words, values)
        return pa.array(~np.isnan(scores), mask=~known)

    def score(self, texts: Any, requests: Any, words: Any, values: Any) -> pa.Array:
        """Return the scores of texts. The arguments are Arrow arrays."""
        scores, _ = self._asked(texts, requests, words, values)
        return pa.array(np.nan_to_num(scores, nan=0.0))

    def highlight(self, texts: Any, requests: Any, words: Any, values: Any, pre: Any, post: Any) -> pa.Array:
        """Return texts with marks around matching words. The arguments are Arrow arrays."""
        return self._marked(highlight, texts, requests, words, values, pre, post)

    def snippet(
        self, texts: Any, requests: Any, words: Any, values: Any, pre: Any, post: Any, most: Any, gap: Any
    ) -> pa.Array:
        """Return the best excerpts of texts, with marks around words. The arguments are Arrow arrays."""
        return self._marked(snippet, texts, requests, words, values, pre, post, most, gap)

    def _marked(self, marks: Callable[..., pa.Array], texts: Any, *columns: Any) -> pa.Array:
        """Apply a function to lists of texts. The result is NULL if an argument is NULL."""
        lists = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        result: list[list[str | None] | None] = [None] * len(lists)
        for request, query, beside, *rest, places in _groups(*columns):
            if None in (request, query, *rest):
                continue
            analyser = self._analyser(request, beside or "")
            tokens = targets_of(query, analyser)
            mine = lists.take(pa.array(places))
            marked = pa.ListArray.from_arrays(_offsets(mine), marks(mine.flatten(), tokens, analyser, *rest))
            for place, part in zip(places.tolist(), marked.to_pylist(), strict=True):
                result[place] = part
        return pc.if_else(lists.is_valid(), pa.array(result, pa.list_(pa.string())), None)

    def _analyser(self, text: str, values: str) -> Analyser:
        """Return the analyser of the requested column. An empty request selects the default analyser."""
        if not text:
            return Analyser()
        request = TextRequest.of(text)
        snapshot = self._dataset(request, values).handle.snapshot
        analyser = text_route(snapshot, request.column, None).analyser
        if request.is_value and analyser.parameters.is_json:
            return Analyser(replace(analyser.parameters, lance_tokenizer=AnalyserParameters.lance_tokenizer))
        return analyser

    def _asked(self, texts: Any, requests: Any, words: Any, values: Any) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the score of each row (NaN without a match), and whether both its text and its words are present."""
        lists = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        scores = np.full(len(lists), np.nan, np.float32)
        has_texts = _has_texts(lists)
        for request, query, beside, places in _groups(requests, words, values):
            if query is None or request is None:
                has_texts[places] = False
                continue
            matcher = self._matcher(TextRequest.of(request), query, beside or "")
            scores[places] = matcher.scores(lists if len(places) == len(lists) else lists.take(pa.array(places)))
        return scores, has_texts

    def _matcher(self, request: TextRequest, words: str, values: str) -> TextMatcher:
        query = request.query(words, values)
        dataset = self._dataset(request, values)
        snapshot = dataset.handle.snapshot
        key = request.table, request.held, snapshot.uri, snapshot.manifest.path, id(snapshot), query
        return self._matchers.get(key, partial(matcher_of, dataset, query))

    def _dataset(self, request: TextRequest, values: str) -> LanceDataset:
        if request.held is None:
            return self._open(request.table, request.choice(values))
        dataset = self._held.find(request.held)
        if dataset is None:
            raise NotFoundError("the transaction that read these rows has ended", where=request.table)
        return dataset


def matcher_of(dataset: LanceDataset, query: MatchQuery | PhraseQuery) -> TextMatcher:
    """Return a matcher that evaluates a query on texts as if they were stored in a table."""
    return search_of(dataset, query).text_matcher()


def search_of(dataset: LanceDataset, query: MatchQuery | PhraseQuery) -> TextSearch:
    """Return the search for a query in all rows of a table."""
    table = dataset.handle.table
    return TextSearch(table, query, table.plan(ScanOptions(columns=[])))


def _has_texts(lists: pa.ListArray) -> NDArray[np.bool_]:
    """Return whether each list has a non-null element. Empty lists of a list column also count."""
    present: NDArray[np.bool_] = lists.is_valid().to_numpy(zero_copy_only=False).copy()
    elements = lists.flatten()
    if not elements.null_count:
        return present
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    valid = np.concatenate([[0], np.cumsum(elements.is_valid().to_numpy(zero_copy_only=False))])
    ends = np.cumsum(sizes)
    present &= (sizes == 0) | (valid[ends] > valid[ends - sizes])
    return present


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Return the list offsets of the flattened elements. A null list counts as empty."""
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())


def _groups(*columns: Any) -> Iterator[tuple[Any, ...]]:
    """Yield each distinct combination of column values, with the positions of its rows."""
    codes: NDArray[np.int64] | None = None
    dictionaries = []
    for column in columns:
        encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = encoded.dictionary_encode("encode")
        values = encoded.dictionary.to_pylist()
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = indices if codes is None else codes * max(len(values), 1) + indices
        dictionaries.append(values)
    assert codes is not None
    for code in distinct(codes).tolist():
        rest, found = code, []
        for values in reversed(dictionaries):
            rest, place = divmod(rest, max(len(values), 1))
            found.append(values[place])
        yield *reversed(found), np.flatnonzero(codes == code)
