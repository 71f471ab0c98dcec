"""Builds partitions from rows. Batches of texts are analysed in parallel. Tokens stay in memory up to a limit."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from lance_duck.arrow.memory import release_unused
from lance_duck.index.inverted.costs import HELD_SHARE, LEAST_PIECE, SORTER_BYTES, TEXT_BYTES
from lance_duck.index.inverted.invert import MOST_DOCUMENTS, Inversion, TokenBatch, TokenSorter
from lance_duck.index.inverted.settings import LIST_ELEMENT, InvertedSettings
from lance_duck.index.inverted.write import done_in_threads
from lance_duck.index.kind import ROW, VALUE, BuildOptions
from lance_duck.text.analyser import Analyser
from lance_duck.text.elements import elements_of
from lance_duck.text.vocabulary import TermVocabulary


def build_partitions(
    rows: pa.RecordBatchReader, settings: InvertedSettings, options: BuildOptions
) -> Iterator[Inversion]:
    """Yield inverted partitions of rows, as few as the memory limit allows. Rows without documents yield nothing.

    Args:
        rows: Columns `VALUE` (texts or lists of texts) and `ROW`.
        settings: How texts are analysed.
        options: Provides the progress callback and the default memory limit.

    Raises:
        UnsupportedError: The analyser is not supported.
    """
    with_positions = settings.parameters.with_position
    limit = max(memory_limit(settings, options) // HELD_SHARE, LEAST_PIECE)
    inversion = Inversion(with_positions=with_positions)
    num_rows = 0
    for batch, num_taken in _analysed(rows, settings, limit):
        num_rows += num_taken
        release_unused()
        if options.progress is not None:
            options.progress(num_rows)
        size, count = inversion.nbytes + batch.nbytes, len(inversion) + len(batch)
        if len(inversion) and (size > limit or count > MOST_DOCUMENTS):
            yield inversion
            inversion = Inversion(with_positions=with_positions)
        if len(batch):
            inversion.add(batch)
    if len(inversion):
        yield inversion


def memory_limit(settings: InvertedSettings, options: BuildOptions) -> int:
    """Return the memory limit of a build, in bytes."""
    return options.memory_limit if settings.memory_limit is None else settings.memory_limit


def _analysed(rows: pa.RecordBatchReader, settings: InvertedSettings, limit: int) -> Iterator[tuple[TokenBatch, int]]:
    """Yield the tokens and the row count of each batch, in order.

    Args:
        rows: See `build_partitions`.
        settings: See `build_partitions`.
        limit: Maximum size of tokens in memory, in bytes. Texts and the threads' vocabularies may take
            fractions of the limit.
    """
    analyser = Analyser(settings.parameters)
    with_positions = settings.parameters.with_position
    by_element = settings.form.document_granularity == LIST_ELEMENT
    workers = settings.workers or os.cpu_count() or 1
    idle: deque[tuple[TermVocabulary | None, TokenSorter]] = deque()

    def analyse(batch: pa.RecordBatch) -> tuple[TokenBatch, int]:
        try:
            vocabulary, sorter = idle.pop()
        except IndexError:
            vocabulary = None if settings.parameters.is_json else analyser.vocabulary()
            sorter = TokenSorter(with_positions=with_positions, vocabulary=vocabulary)
        row_ids = batch.column(ROW).to_numpy()
        if by_element:
            elements = elements_of(batch.column(VALUE))
            tokens = analyser.analyse(elements.texts, vocabulary)
            sorted_tokens = sorter.elements(tokens, row_ids[elements.rows], elements.places)
        else:
            sorted_tokens = sorter.rows(analyser.analyse(batch.column(VALUE), vocabulary), row_ids)
        if sorter.nbytes <= min(limit // workers, SORTER_BYTES):
            idle.append((vocabulary, sorter))
        return sorted_tokens, batch.num_rows

    text_bytes = min(TEXT_BYTES, max(1, limit // HELD_SHARE))
    return done_in_threads(analyse, _pieces(rows, text_bytes), workers if workers > 1 else 0)


def _pieces(rows: pa.RecordBatchReader, text_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield batches whose texts have at most about `text_bytes` bytes."""
    for batch in rows:
        parts = max(1, min(batch.num_rows, -(-batch.column(VALUE).nbytes // text_bytes)))
        step = -(-batch.num_rows // parts)
        for start in range(0, batch.num_rows, step) if step else ():
            yield batch.slice(start, step)
