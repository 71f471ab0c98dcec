"""Which segments answer for which fragments of a column, which fragments are analysed, how, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lance_duck.index.catalog import ColumnIndex, Segment, catalog
from lance_duck.index.inverted.kind import INVERTED, settings_of
from lance_duck.index.inverted.settings import ROW
from lance_duck.index.search import ask, wrong_with
from lance_duck.scan.text.columns import TextColumn, text_column
from lance_duck.snapshot import Snapshot
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters


@dataclass(frozen=True, eq=False)
class TextRoute:
    """How a column is searched.

    Attributes:
        column: The column.
        analyser: What makes terms of its texts, and of queries.
        name: The index that is asked; None: none is.
        segments: Its segments.
        open: Fragments that no segment covers; their texts are read.
        reasons: Why an index is not asked, or a part of it is not.
        rounds_lengths: See `bm25.Statistics`.
    """

    column: TextColumn
    analyser: Analyser
    name: str | None
    segments: Sequence[Segment]
    open: frozenset[int]
    reasons: tuple[str, ...] = ()
    rounds_lengths: bool = False


def text_route(snapshot: Snapshot, name: str, analyzer: Mapping[str, Any] | None) -> TextRoute:
    """Decide how a column is searched; opens segments, to see how they analyse.

    What is decided for a column is remembered with the version, for as long as no other segment is seen to be broken.

    Args:
        snapshot: The version of the table.
        name: The column.
        analyzer: Parameters of the analyser that the query names; None: those of the index, or the defaults.

    Raises:
        InvalidInputError, UnsupportedError: There is no such analyser, or no such column: see `text_column`.
    """
    if analyzer is not None:
        return _decided(snapshot, text_column(snapshot.schema, name), analyzer)
    column = snapshot.derived(("text column", name), lambda: text_column(snapshot.schema, name))
    indexes = snapshot.derived(("full-text indexes", name), lambda: _full_text_indexes(snapshot, column.path))
    broken = tuple(wrong_with(snapshot, segment) is not None for index in indexes for segment in index.segments)
    return snapshot.derived(("text route", name, broken), lambda: _decided(snapshot, column, None))


def _decided(snapshot: Snapshot, column: TextColumn, analyzer: Mapping[str, Any] | None) -> TextRoute:
    wanted = None if analyzer is None else _Manner(AnalyserParameters.from_arguments(analyzer, "analyzer"))
    reasons = [
        f"segment {str(each.metadata.uuid)[:8]} of index {each.metadata.name!r} is ignored: {each.reason}"
        for each in catalog(snapshot).ignored_over(column.path)
    ]
    everything = frozenset(snapshot.fragments.ids())
    for index in _full_text_indexes(snapshot, column.path):
        manners = [(segment, _manner(snapshot, segment, reasons)) for segment in index.segments]
        manner = next((each for _, each in manners if each is not None), None)
        if manner is None:
            continue
        if wanted is not None and manner.parameters != wanted.parameters:
            reasons.append(f"index {index.name!r} analyses texts in another way than the query")
            continue
        segments = [segment for segment, each in manners if each == manner]
        if len(segments) < sum(each is not None for _, each in manners):
            reasons.append(f"segments of index {index.name!r} analyse texts in several ways: those of one are asked")
        covered = {fragment for segment in segments for fragment in segment.fragments.tolist()}
        analyser = Analyser(manner.parameters)
        rest = everything.difference(covered)
        return TextRoute(column, analyser, index.name, segments, rest, tuple(reasons), manner.rounds_lengths)
    analyser = Analyser((wanted or _Manner(AnalyserParameters())).parameters)
    return TextRoute(column, analyser, None, (), everything, tuple(reasons or ["no index"]))


def indexed_text_columns(snapshot: Snapshot) -> Sequence[str]:
    """Return the paths of the columns that have a full-text index, each once."""
    paths = dict.fromkeys(index.path for index in catalog(snapshot) if index.segments and index.kind is INVERTED)
    return [path for path in paths if path is not None]


@dataclass(frozen=True)
class _Manner:
    """How texts are analysed, and lengths counted.

    Attributes:
        parameters: Of the analyser, without what concerns the index alone.
        rounds_lengths: See `bm25.Statistics`.
    """

    parameters: AnalyserParameters
    rounds_lengths: bool = False

    def __post_init__(self) -> None:
        plain = replace(self.parameters, with_position=_DEFAULTS.with_position, block_size=_DEFAULTS.block_size)
        object.__setattr__(self, "parameters", plain)


_DEFAULTS: Final = AnalyserParameters()


def _full_text_indexes(snapshot: Snapshot, path: str) -> Sequence[ColumnIndex]:
    return [index for index in catalog(snapshot).over(path) if index.kind is INVERTED]


def _manner(snapshot: Snapshot, segment: Segment, reasons: list[str]) -> _Manner | None:
    """Return how a segment analyses; None, with a reason: it cannot be asked."""
    if not len(segment.fragments):
        return None
    key = "full-text settings", segment.uuid
    settings = ask(snapshot, segment, lambda index: snapshot.derived(key, lambda: settings_of(index)))
    if settings is None:
        reasons.append(f"{segment} is not used: {wrong_with(snapshot, segment)}")
        return None
    refusal = settings.parameters.refusal
    if refusal is None and settings.form.document_granularity != ROW:
        refusal = "its documents are list elements"
    if refusal is not None:
        reasons.append(f"{segment} is not used: {refusal}")
        return None
    return _Manner(settings.parameters, not settings.form.block_form.has_scores)
