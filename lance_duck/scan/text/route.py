"""Routes of full-text searches: the segments to search, the fragments to analyse, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lance_duck.arrow.types import is_list
from lance_duck.errors import InvalidInputError
from lance_duck.index.catalog import ColumnIndex, Segment, catalog
from lance_duck.index.inverted.kind import INVERTED, settings_of
from lance_duck.index.inverted.settings import LIST_ELEMENT, InvertedSettings, is_by_element, settings_in
from lance_duck.index.search import ask, wrong_with
from lance_duck.scan.text.columns import TextColumn, text_column
from lance_duck.scan.text.query.tree import DocumentGranularity
from lance_duck.snapshot import Snapshot
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters


@dataclass(frozen=True, eq=False)
class TextRoute:
    """The route of a search to one column.

    Attributes:
        column: The column.
        analyser: Analyser of the column's texts, and of queries.
        name: Name of the index to search, or None.
        segments: Segments of the index.
        open: Ids of the fragments that no segment covers. Their texts are read.
        reasons: Reasons why an index or a segment is not searched.
        rounds_lengths: See `bm25.Statistics`.
        by_element: Whether documents are list elements instead of rows.
    """

    column: TextColumn
    analyser: Analyser
    name: str | None
    segments: Sequence[Segment]
    open: frozenset[int]
    reasons: tuple[str, ...] = ()
    rounds_lengths: bool = False
    by_element: bool = False


def text_route(
    snapshot: Snapshot,
    name: str,
    analyzer: Mapping[str, Any] | None,
    granularity: DocumentGranularity | None = None,
) -> TextRoute:
    """Decide how to search a column. Segments are opened to read their analyser settings.

    The route is cached with the version, until a search finds that a segment is corrupt.

    Args:
        snapshot: The version of the table.
        name: Path of the column.
        analyzer: Parameters of the analyser in the query. None uses the parameters of the index, or the defaults.
        granularity: Granularity of documents. None uses the granularity of the indexes.

    Raises:
        InvalidInputError, UnsupportedError: The analyser or the column does not exist: see `text_column`. Or
            `granularity` is None, and the column has both an index of rows and an index of list elements.
    """
    if analyzer is not None:
        return _decided(snapshot, text_column(snapshot.schema, name), analyzer, granularity)
    column = snapshot.derived(("text column", name), lambda: text_column(snapshot.schema, name))
    indexes = snapshot.derived(("full-text indexes", name), lambda: _full_text_indexes(snapshot, column.path))
    broken = tuple(wrong_with(snapshot, segment) is not None for index in indexes for segment in index.segments)
    key = "text route", name, granularity, broken
    return snapshot.derived(key, lambda: _decided(snapshot, column, None, granularity))


def _decided(
    snapshot: Snapshot,
    column: TextColumn,
    analyzer: Mapping[str, Any] | None,
    granularity: DocumentGranularity | None,
) -> TextRoute:
    by_element = _by_element(snapshot, column, granularity)
    expected = None if analyzer is None else _Manner(_parameters(column, analyzer))
    reasons = [
        f"segment {str(each.metadata.uuid)[:8]} of index {each.metadata.name!r} is ignored: {each.reason}"
        for each in catalog(snapshot).ignored_over(column.path)
    ]
    everything = snapshot.fragments.id_set
    refused: _Manner | None = None
    for index in _full_text_indexes(snapshot, column.path):
        manners = [(segment, _manner(snapshot, segment, column, reasons)) for segment in index.segments]
        manner = next((each for _, each in manners if each is not None), None)
        if manner is None:
            continue
        refusal = _refusal(index, manner, expected, by_element=by_element)
        if refusal is not None:
            reasons.append(refusal)
            refused = refused or manner
            continue
        segments = [segment for segment, each in manners if each == manner]
        if len(segments) < sum(each is not None for _, each in manners):
            reasons.append(
                f"the segments of index {index.name!r} have different full-text parameters, so only some are used"
            )
        covered = {fragment for segment in segments for fragment in segment.fragments.tolist()}
        analyser = Analyser(manner.parameters)
        rest = everything.difference(covered)
        rounds = manner.rounds_lengths
        return TextRoute(column, analyser, index.name, segments, rest, tuple(reasons), rounds, by_element)
    analyser = Analyser((expected or refused or _stated(snapshot, column, by_element=by_element)).parameters)
    why = tuple(reasons or ["no index"])
    return TextRoute(column, analyser, None, (), everything, why, by_element=by_element)


def _stated(snapshot: Snapshot, column: TextColumn, *, by_element: bool) -> _Manner:
    """Return the settings of an index without a usable segment, or the defaults without an index.

    The segments may be empty or corrupt. Settings are read from the index files. If this fails, they are read from the
    manifest, which does not contain custom stop words.
    """
    for index in _full_text_indexes(snapshot, column.path):
        segment = index.segments[-1]
        found = _settings(snapshot, segment) if segment.metadata.files else None
        settings = found or settings_in(segment.metadata.details)
        parameters = replace(settings.parameters, lance_tokenizer=_DOCUMENTS[column.is_json])
        manner = _Manner(parameters, by_element=settings.form.document_granularity == LIST_ELEMENT)
        if parameters.refusal is None and manner.by_element == by_element:
            return manner
    return _Manner(_parameters(column, {}))


def _refusal(index: ColumnIndex, manner: _Manner, expected: _Manner | None, *, by_element: bool) -> str | None:
    """Return why an index does not support a query, or None if it does."""
    if manner.by_element != by_element:
        return f"documents of index {index.name!r} are {'list elements' if manner.by_element else 'rows'}"
    if expected is not None and manner.parameters != expected.parameters:
        return f"index {index.name!r} uses other full-text parameters than the query"
    return None


def indexed_text_columns(snapshot: Snapshot) -> Mapping[str, DocumentGranularity]:
    """Return the columns with a full-text index, and the granularity of documents.

    For a column with indexes of both granularities, the granularity is rows.
    """
    columns: dict[str, DocumentGranularity] = {}
    for index in catalog(snapshot):
        if index.path is not None and index.segments and index.kind is INVERTED:
            by_element = _lists_elements(index) and columns.get(index.path) is not DocumentGranularity.ROW
            columns[index.path] = DocumentGranularity.LIST_ELEMENT if by_element else DocumentGranularity.ROW
    return columns


def _by_element(snapshot: Snapshot, column: TextColumn, granularity: DocumentGranularity | None) -> bool:
    """Return whether documents are list elements."""
    if granularity is not None:
        if granularity is DocumentGranularity.LIST_ELEMENT and not is_list(column.type):
            raise InvalidInputError(
                f"document_granularity LIST_ELEMENT needs a list column, unlike {column.path!r}",
                found=str(column.type),
            )
        return granularity is DocumentGranularity.LIST_ELEMENT
    by_element = {index.name: _lists_elements(index) for index in _full_text_indexes(snapshot, column.path)}
    if len(set(by_element.values())) > 1:
        named = ", ".join(f"{name!r} of {'list elements' if by else 'rows'}" for name, by in by_element.items())
        raise InvalidInputError(
            f"the query of column {column.path!r} is ambiguous, because the column has indexes {named}",
            remedy="pass document_granularity",
        )
    return any(by_element.values())


def _lists_elements(index: ColumnIndex) -> bool:
    """Return whether the documents of an index are list elements, according to the manifest."""
    return is_by_element(index.segments[-1].metadata.details)


@dataclass(frozen=True)
class _Manner:
    """How texts are analysed, and how lengths are counted.

    Attributes:
        parameters: Analyser parameters, except parameters that affect only the index.
        rounds_lengths: See `bm25.Statistics`.
        by_element: Whether documents are list elements.
    """

    parameters: AnalyserParameters
    rounds_lengths: bool = False
    by_element: bool = False

    def __post_init__(self) -> None:
        plain = replace(self.parameters, with_position=_DEFAULTS.with_position, block_size=_DEFAULTS.block_size)
        object.__setattr__(self, "parameters", plain)


_DEFAULTS: Final = AnalyserParameters()
_DOCUMENTS: Final = {True: "json", False: "text"}


def _parameters(column: TextColumn, analyzer: Mapping[str, Any]) -> AnalyserParameters:
    """Return the analyser parameters of a query. `lance_tokenizer` depends on whether the column contains JSON."""
    parameters = AnalyserParameters.from_arguments(analyzer, "analyzer")
    return replace(parameters, lance_tokenizer=_DOCUMENTS[column.is_json])


def _full_text_indexes(snapshot: Snapshot, path: str) -> Sequence[ColumnIndex]:
    return [index for index in catalog(snapshot).over(path) if index.kind is INVERTED]


def _manner(snapshot: Snapshot, segment: Segment, column: TextColumn, reasons: list[str]) -> _Manner | None:
    """Return the manner of a segment. If it is unusable, adds a reason and returns None."""
    if not len(segment.fragments):
        return None
    settings = _settings(snapshot, segment)
    if settings is None:
        reasons.append(f"{segment} is not used: {wrong_with(snapshot, segment)}")
        return None
    refusal = settings.parameters.refusal
    if refusal is None and settings.parameters.is_json != column.is_json:
        refusal = f"its documents are {settings.parameters.lance_tokenizer}, unlike the column's"
    if refusal is not None:
        reasons.append(f"{segment} is not used: {refusal}")
        return None
    by_element = settings.form.document_granularity == LIST_ELEMENT
    return _Manner(settings.parameters, not settings.form.block_form.has_scores, by_element)


def _settings(snapshot: Snapshot, segment: Segment) -> InvertedSettings | None:
    """Return the settings in the files of a segment, or None if the segment is corrupt."""
    key = "full-text settings", segment.uuid
    return ask(snapshot, segment, lambda index: snapshot.derived(key, lambda: settings_of(index)))
