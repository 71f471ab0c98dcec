"""Validation of full-text segments: each covered row must occur once, with the terms of its current text.

To compare the tokens of a row, the 64-bit hashes of its terms and positions are added up. If documents are list
elements, the sum of each element is weighted by the element's position and added to the sum of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of
from lance_duck.arrow.join import joined
from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.kind import settings_of
from lance_duck.index.inverted.settings import LIST_ELEMENT
from lance_duck.index.names import Follower
from lance_duck.kernels.keys.xxhash import xxh64
from lance_duck.scan.text.places import AnalysedRows
from lance_duck.snapshot import Snapshot
from lance_duck.text.analyser import Analyser
from lance_duck.text.tokens import Tokens

Sums = NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


class TextRows:
    """The rows of an open full-text segment.

    Args:
        snapshot: Version of the table.
        segment: A segment of its catalog.
        index: The segment, open.

    Raises:
        CorruptError: A partition is corrupt, a row lies past the end of its fragment, or a live row occurs twice.
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, index: Any) -> None:
        settings = settings_of(index)
        self._has_positions = settings.form.with_position
        self._by_element = settings.form.document_granularity == LIST_ELEMENT
        self._analyser = None if settings.parameters.refusal else Analyser(settings.parameters)
        follower = Follower(snapshot, segment)
        addresses, sums = [], []
        for partition in index.partitions:
            contents = partition.contents()
            names, lives = follower.follow(contents.documents.row_ids)
            addresses.append(names[lives])
            own = _sums_of_contents(contents, self._has_positions)
            sums.append(_placed(own, contents.documents.elements)[lives])
        if self._by_element:
            addresses, sums = ([each] for each in _of_rows(joined(addresses, np.uint64), joined(sums, np.uint64)))
        self._addresses, self._sums = _ordered(joined(addresses, np.uint64), joined(sums, np.uint64))
        twice = np.flatnonzero(self._addresses[1:] == self._addresses[:-1])
        if len(twice):
            raise CorruptError("the index contains rows twice", where=segment, found=self._addresses[twice[0]])

    def check(self, fragment_id: int, column: pa.Array, offsets: NDArray[np.int64]) -> None:
        """Compare the segment with the texts and offsets of a fragment's live rows.

        An index with an unsupported analyser is not compared.

        Raises:
            CorruptError: The index lacks a row that has terms, contains a row without terms, or has different terms for
                a row.
        """
        if self._analyser is None:
            return
        addresses = np.uint64(fragment_id << 32) + offsets.astype(np.uint64)
        documents = AnalysedRows.of(addresses, column, self._analyser, by_element=self._by_element)
        expected = _placed(_sums_of_tokens(documents.tokens, self._has_positions), documents.elements)
        if self._by_element:
            addresses, expected = _of_rows(documents.addresses, expected)
        else:
            has_terms = documents.lengths > 0
            addresses, expected = _ordered(addresses[has_terms], expected[has_terms])
        mine = slice(*np.searchsorted(self._addresses, [fragment_id << 32, (fragment_id + 1) << 32]).tolist())
        for rows, what in (
            (difference_of(addresses, self._addresses[mine]), "lacks"),
            (difference_of(self._addresses[mine], addresses), "has terms of"),
            (self._different(mine, addresses, expected), "has different terms for"),
        ):
            if len(rows):
                raise CorruptError(
                    f"the index {what} row {int(rows[0]) & 0xFFFFFFFF} of fragment {fragment_id}",
                    found=f"{len(rows)} such rows",
                    remedy="create the index again, because it is damaged or used another stemmer",
                )

    def _different(self, mine: slice, addresses: Sums, expected: Sums) -> Sums:
        """Return the rows whose terms differ. Empty if the rows themselves differ."""
        if not np.array_equal(self._addresses[mine], addresses):
            return addresses[:0]
        different: Sums = addresses[self._sums[mine] != expected]
        return different


def _placed(sums: Sums, elements: Sequence[NDArray[np.uint32]]) -> Sums:
    """Return the sums of list elements, weighted by position without loss of bits. Sums of plain rows are unchanged."""
    if not elements:
        return sums
    weights = np.zeros(len(sums), np.uint64)
    for level in elements:
        weights = weights * _FACTOR + level + np.uint64(1)
    return (sums + np.uint64(1)) * (weights * np.uint64(2) + np.uint64(1))


def _of_rows(addresses: Sums, sums: Sums) -> tuple[Sums, Sums]:
    """Return the distinct row addresses, ascending, and the sum of each row's elements."""
    rows, places = np.unique(addresses, return_inverse=True)
    totals = np.zeros(len(rows), np.uint64)
    np.add.at(totals, places, sums)
    return rows, totals


def _ordered(addresses: Sums, sums: Sums) -> tuple[Sums, Sums]:
    order = np.argsort(addresses, kind="stable")
    return addresses[order], sums[order]


def _sums_of_contents(contents: PartitionContents, has_positions: bool) -> Sums:
    """Return the token hash sum of each document."""
    terms: Sums = np.repeat(_hashes(contents.terms), np.diff(contents.bounds))
    documents: NDArray[np.uint32] = contents.document_ids
    if has_positions and contents.positions is not None:
        terms = np.repeat(terms, contents.frequencies)
        documents = np.repeat(documents, contents.frequencies)
        weights = _weights(contents.positions)
    else:
        weights = contents.frequencies.astype(np.uint64)
    sums = np.zeros(len(contents.documents), np.uint64)
    np.add.at(sums, documents, terms * weights)
    return sums


def _sums_of_tokens(tokens: Tokens, has_positions: bool) -> Sums:
    """Return the token hash sum of each text."""
    terms = _hashes(tokens.terms)[tokens.term_ids]
    if has_positions:
        terms = terms * _weights(tokens.positions)
    upto = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
    return np.diff(upto[tokens.bounds])


def _weights(positions: NDArray[np.uint32]) -> Sums:
    """Return an odd weight for each position. With an even weight, multiplication would lose bits of the hashes."""
    return positions.astype(np.uint64) * np.uint64(2) + np.uint64(1)


def _hashes(terms: pa.LargeBinaryArray) -> Sums:
    hashes = np.empty(len(terms), np.uint64)
    _, offsets, data = terms.buffers()
    if not len(terms) or offsets is None:
        return hashes
    places = np.frombuffer(offsets, np.int64, len(terms) + 1, 8 * terms.offset)
    if not xxh64(np.frombuffer(data or b"", np.uint8), places, hashes):
        raise CorruptError("the term offsets of a partition do not ascend")
    return hashes
