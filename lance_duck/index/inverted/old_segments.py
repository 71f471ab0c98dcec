"""Segments of older writers.

Before 2026, writers stored each list element as a separate document of its row, without its list position. They also
stored texts without terms. `by_row` builds one document for each row with a term, sorted by row.

pylance before 0.28 (2025) did not write partitions. It wrote one set of files, with one row per posting.
`read_unpartitioned` reads these files:

tokens.lance    _token (string, sorted by bytes), _token_id (uint32). Metadata: tokenizer (JSON: analyser parameters)
docs.lance      one row per document: _rowid (uint64), _num_tokens (uint32), 0 for texts without terms
invert.lance    the postings, term by term in order of their ids: _rowid (uint64), _frequency (float) [, _position
                (list<int32>)]. Metadata: offsets (JSON: first posting of each term), max_scores (JSON, not used here)

The column, not the metadata, shows whether positions are stored. A list element is a document with its own positions;
docs.lance stores the length of one of the row's elements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile, SegmentReader
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.columns import numbers_without_nulls, read_columns
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.layout import WORDS, InvertedParameters
from lance_duck.index.inverted.terms import open_terms
from lance_duck.text.parameters import AnalyserParameters

TERMS: Final = "tokens.lance"
DOCUMENTS: Final = "docs.lance"
POSTINGS: Final = "invert.lance"
_TOKENIZER: Final = "tokenizer"
_OFFSETS: Final = "offsets"
_FREQUENCY: Final = "_frequency"
_POSITION: Final = "_position"
_MOST_FREQUENT: Final = 1 << 24  # larger floats cannot represent every integer
_POSITIONS: Final = pa.list_(pa.field("item", pa.int32()))
_DOCUMENTS: Final = {layout.ROW_ID: pa.uint64(), layout.NUM_TOKENS: pa.uint32()}


def read_unpartitioned(files: SegmentReader, *, is_list: bool) -> tuple[InvertedParameters, PartitionContents]:
    """Read a whole segment. Returns the parameters for rewriting it, and its contents.

    Args:
        files: Files of the segment.
        is_list: Whether the column contains lists. Their elements were analysed separately, so positions are dropped.

    Raises:
        NotFoundError: A file is missing.
        CorruptError: The files contradict themselves.
    """
    postings = files.open(POSTINGS)
    bounds = _bounds(postings)
    terms_file = files.open(TERMS)
    terms = open_terms(terms_file, layout.ARROW, len(bounds) - 1).in_order().by_id()
    row_ids, num_tokens = map(numbers_without_nulls, read_columns(files.open(DOCUMENTS), _DOCUMENTS))
    names, counts = map(
        numbers_without_nulls, read_columns(postings, {layout.ROW_ID: pa.uint64(), _FREQUENCY: pa.float32()})
    )
    frequencies = _frequencies(counts, postings.path)
    positions = None if is_list else _positions(postings, frequencies)
    documents = _documents(names, row_ids, postings.path)
    contents = PartitionContents(Documents(row_ids, num_tokens), terms, bounds, documents, frequencies, positions)
    parameters = _parameters(terms_file, with_position=_POSITION in postings.schema.names)
    return replace(parameters, with_position=positions is not None), by_row(contents, keeps_positions=not is_list)


def _parameters(file: SegmentFile, *, with_position: bool) -> InvertedParameters:
    """Return the parameters that pylance writes for the segment on a rewrite: format 1, terms as an FST."""
    tokenizer = file.metadata.get(_TOKENIZER)
    stored = AnalyserParameters() if tokenizer is None else AnalyserParameters.from_json(tokenizer)
    params: Mapping[str, Any] = json.loads(stored.to_json()) | {"with_position": with_position}
    return InvertedParameters(params, format_version=1, posting_tail_codec=WORDS)


def _bounds(file: SegmentFile) -> NDArray[np.int64]:
    """Return the index of each term's first posting, followed by the number of postings."""
    text = file.metadata.get(_OFFSETS, "")
    try:
        offsets = np.array(json.loads(text), dtype=np.int64)
        if offsets.ndim != 1 or np.diff(offsets, append=file.num_rows, prepend=0).min(initial=0) < 0:
            raise ValueError
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CorruptError(_OFFSETS, where=file.path, expected="ascending numbers", found=repr(text[:80])) from error
    if offsets[:1].sum() != 0 or (not len(offsets) and file.num_rows):
        raise CorruptError("there are postings before the first term", where=file.path, found=text[:80])
    return np.append(offsets, file.num_rows)


def _frequencies(counts: NDArray[np.float32], where: str) -> NDArray[np.uint32]:
    """Convert frequencies, which were written as floats, to uint32."""
    good = (counts >= 1) & (counts <= _MOST_FREQUENT) & (counts == np.floor(counts))
    if not good.all():
        broken = counts[~good][0]
        raise CorruptError(_FREQUENCY, where=where, expected=f"a whole number of 1 … {_MOST_FREQUENT}", found=broken)
    return counts.astype(np.uint32)


def _documents(names: NDArray[np.uint64], row_ids: NDArray[np.uint64], where: str) -> NDArray[np.uint32]:
    """Return the document of each posting. If a row has several documents, returns the first one."""
    order = np.argsort(row_ids, kind="stable")
    ordered = row_ids[order]
    places = np.searchsorted(ordered, names)
    strange = places == len(ordered)
    strange[~strange] = ordered[places[~strange]] != names[~strange]
    if strange.any():
        raise CorruptError(
            "a posting refers to an unknown document",
            where=where,
            expected="a document of docs.lance",
            found=names[strange][0],
        )
    documents: NDArray[np.uint32] = order[places].astype(np.uint32)
    return documents


def _positions(file: SegmentFile, frequencies: NDArray[np.uint32]) -> NDArray[np.uint32] | None:
    if _POSITION not in file.schema.names:
        return None
    (lists,) = read_columns(file, {_POSITION: _POSITIONS})
    values = lists.flatten()
    counts = np.diff(np.asarray(lists.offsets))
    if values.null_count or (counts != frequencies).any():
        raise CorruptError(_POSITION, where=file.path, expected="one position per occurrence")
    positions = numbers_without_nulls(values)
    falls = np.diff(positions) <= 0
    falls[np.cumsum(counts)[:-1] - 1] = False  # the next posting may begin with a lower position
    if positions.min(initial=0) < 0 or falls.any():
        raise CorruptError(_POSITION, where=file.path, expected="ascending numbers from 0 on")
    return positions.astype(np.uint32)


def by_row(contents: PartitionContents, *, keeps_positions: bool) -> PartitionContents:
    """Return a partition with one document for each row that has a term.

    Args:
        contents: Documents and postings in any order, with arbitrary document lengths. A row may have several
            documents, and documents may lack terms.
        keeps_positions: Whether to keep positions. They are meaningless if a row has several documents.
    """
    names, rows = np.unique(contents.documents.row_ids, return_inverse=True)
    rows = rows.astype(np.int64)[contents.document_ids]
    lengths = np.bincount(rows, contents.frequencies, len(names)).clip(max=0xFFFFFFFF).astype(np.uint32)
    has_terms = lengths > 0
    new = np.cumsum(has_terms) - 1
    keys = np.repeat(np.arange(len(contents.terms)) << 32, np.diff(contents.bounds)) | new[rows]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    unique_keys = keys[firsts]
    frequencies = contents.frequencies[order]
    return PartitionContents(
        Documents(names[has_terms], lengths[has_terms]),
        contents.terms,
        np.searchsorted(unique_keys >> 32, np.arange(len(contents.terms) + 1)).astype(np.int64),
        (unique_keys & 0xFFFFFFFF).astype(np.uint32),
        np.add.reduceat(frequencies, firsts) if len(firsts) else frequencies,
        _moved_positions(contents, order) if keeps_positions else None,
    )


def _moved_positions(contents: PartitionContents, order: NDArray[np.int64]) -> NDArray[np.uint32] | None:
    """Return the positions of postings, after reordering the postings."""
    if contents.positions is None:
        return None
    counts = contents.frequencies.astype(np.int64)
    moved = counts[order]
    shifts = (np.cumsum(counts) - counts)[order] - (np.cumsum(moved) - moved)
    places = np.arange(len(contents.positions)) + np.repeat(shifts, moved)
    positions: NDArray[np.uint32] = contents.positions[places]
    return positions
