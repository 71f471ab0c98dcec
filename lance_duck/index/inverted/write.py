"""Writes the files of a segment from partition contents. `layout` describes the files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck import interrupts
from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.index.files import SegmentWriter
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs import blocks, fst, impacts, positions
from lance_duck.index.inverted.codecs.arrays import bytes_and_offsets
from lance_duck.index.inverted.codecs.scores import greatest_scores, inverse_frequencies, length_norms
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.costs import ENCODED_POSTINGS
from lance_duck.index.inverted.layout import InvertedParameters
from lance_duck.rows import roaring_bytes

if TYPE_CHECKING:
    from lance_duck.file.write.writer import FileWriter

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class PostingStretch:
    """The postings of adjacent terms in a partition, in slices of the arrays of `PartitionContents`."""

    bounds: NDArray[np.int64]
    document_ids: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.uint32] | None


@dataclass(frozen=True, eq=False)
class DocumentLengths:
    """Values that are derived from the document lengths of a partition, computed once for all terms.

    Attributes:
        norms: float32 (documents,), norm of each document, see `length_norms`.
        codes: uint8 (documents,), length code of each document, see `impacts`.
    """

    norms: NDArray[np.float32]
    codes: NDArray[np.uint8]


_ENCODERS: Final = 1
"""Number of threads that encode postings. Meanwhile, the calling thread decodes runs and writes, which takes about the
same time."""
_NO_FRAGMENTS: Final = np.empty(0, np.uint32)


def write_metadata(
    writer: SegmentWriter,
    partitions: Sequence[int],
    parameters: InvertedParameters,
    deleted_fragments: np.ndarray = _NO_FRAGMENTS,
    name: str = layout.METADATA,
) -> None:
    """Write metadata.lance, which completes the segment.

    Args:
        writer: Writer of the segment.
        partitions: Partition numbers. Empty if no row has a term.
        parameters: Parameters of all partitions.
        deleted_fragments: Fragments whose rows are missing, uint32.
        name: Name of the file.
    """
    field = pa.field(layout.DELETED_FRAGMENTS, pa.binary(), nullable=False)
    metadata = parameters.metadata(list(partitions))
    bitmap = pa.array([roaring_bytes(deleted_fragments)], pa.binary())
    _write(writer, name, pa.schema([field], metadata), [bitmap])


def write_partition(
    writer: SegmentWriter, number: int, contents: PartitionContents, parameters: InvertedParameters
) -> None:
    """Write the files of a partition.

    Args:
        writer: Writer of the segment.
        number: Number of the partition, unique in the segment.
        contents: The partition. Postings may only refer to documents of the partition.
        parameters: Parameters of the segment.

    Raises:
        InvalidInputError: The parameters require positions, but the contents lack them.
    """
    write_pieces(writer, number, [contents], parameters)


def write_pieces(
    writer: SegmentWriter, number: int, pieces: Iterable[PartitionContents], parameters: InvertedParameters
) -> None:
    """Write the files of a partition, with one chunk at a time in memory. See `write_partition`.

    Args:
        writer: Writer of the segment.
        number: Number of the partition.
        pieces: One or more chunks. Each has all documents, and some of the terms. A term is in only one chunk.
        parameters: Parameters of the segment.

    Raises:
        InvalidInputError: The parameters require positions, but the contents lack them.
    """
    terms: list[pa.LargeBinaryArray] = []
    documents: list[Documents] = []

    def stretches() -> Iterator[tuple[PostingStretch, DocumentLengths]]:
        lengths: DocumentLengths | None = None
        for piece in pieces:
            if parameters.with_position and piece.positions is None:
                raise InvalidInputError(
                    "the partition does not store positions",
                    where=f"partition {number}",
                    expected="positions",
                    found="none",
                )
            if lengths is None:
                documents.append(piece.documents)
                lengths = _lengths(piece.documents)
            terms.append(piece.terms)
            yield from ((stretch, lengths) for stretch in _stretches(piece))

    def encode(part: tuple[PostingStretch, DocumentLengths]) -> dict[str, pa.Array]:
        return _postings(*part, parameters)

    name = layout.postings_file(number)
    file: FileWriter | None = None
    for columns in done_in_threads(encode, stretches(), _ENCODERS):
        fields = [pa.field(key, array.type, nullable=False) for key, array in columns.items()]
        schema = pa.schema(fields, parameters.postings_metadata)
        file = writer.create(name, schema) if file is None else file
        file.write(pa.record_batch(list(columns.values()), schema=schema))
    if file is None:
        raise InternalError("the partition does not have input", where=f"partition {number}")
    writer.add(name, file)
    _write_terms(writer, number, pa.concat_arrays(terms), parameters)
    _write_documents(writer, number, documents[0])


def _write_terms(
    writer: SegmentWriter, number: int, terms: pa.LargeBinaryArray, parameters: InvertedParameters
) -> None:
    order = np.asarray(pc.array_sort_indices(terms)).astype(np.int64)
    in_order = terms.take(pa.array(order))
    name = layout.tokens_file(number)
    if parameters.token_set_format == layout.ARROW:
        fields = [
            pa.field(layout.TERM, pa.string(), nullable=False),
            pa.field(layout.TERM_ID, pa.uint32(), nullable=False),
        ]
        texts = in_order.cast(pa.large_string()).cast(pa.string())
        return _write(writer, name, pa.schema(fields), [texts, pa.array(order.astype(np.uint32))])
    fields = [
        pa.field(layout.FST_BYTES, pa.large_binary(), nullable=False),
        pa.field(layout.NEXT_ID, pa.uint32(), nullable=False),
        pa.field(layout.TOTAL_LENGTH, pa.uint64(), nullable=False),
    ]
    data = fst.fst_bytes(in_order, order)
    offsets = bytes_and_offsets(terms)[1]
    columns = [
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int64)), pa.py_buffer(data)]
        ),
        pa.array([len(terms)], pa.uint32()),
        pa.array([int(offsets[-1] - offsets[0])], pa.uint64()),
    ]
    return _write(writer, name, pa.schema(fields), columns)


def _write_documents(writer: SegmentWriter, number: int, documents: Documents) -> None:
    columns = {layout.ROW_ID: documents.row_ids, layout.NUM_TOKENS: documents.num_tokens}
    columns |= {f"{layout.DOC_INDEX}{i}": each for i, each in enumerate(documents.elements)}
    arrays = [pa.array(each) for each in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    metadata = {layout.TOTAL_TOKENS: str(documents.total_tokens)}
    _write(writer, layout.documents_file(number), pa.schema(fields, metadata), arrays)


def _stretches(contents: PartitionContents) -> Iterator[PostingStretch]:
    """Yield ranges of terms that are encoded together. An empty partition yields one empty range."""
    bounds, at = contents.bounds, 0
    first = 0
    while True:
        last = int(np.searchsorted(bounds, bounds[first] + ENCODED_POSTINGS, side="right")) - 1
        last = min(max(last, first + 1), len(bounds) - 1)
        low, high = int(bounds[first]), int(bounds[last])
        ids, frequencies, positions = contents.document_ids[low:high], contents.frequencies[low:high], None
        if contents.positions is not None:
            positions = contents.positions[at : at + int(frequencies.sum(dtype=np.int64))]
            at += len(positions)
        yield PostingStretch(bounds[first : last + 1] - low, ids, frequencies, positions)
        if last == len(bounds) - 1:
            return
        first = last


def _lengths(documents: Documents) -> DocumentLengths:
    """Return the document length data that postings need."""
    tokens = documents.num_tokens
    average = documents.total_tokens / max(1, len(tokens))
    return DocumentLengths(length_norms(tokens, average), impacts.length_codes(tokens))


def _postings(
    stretch: PostingStretch, documents: DocumentLengths, parameters: InvertedParameters
) -> dict[str, pa.Array]:
    """Encode the columns of some terms."""
    form = parameters.block_form
    bounds, ids, frequencies = stretch.bounds, stretch.document_ids, stretch.frequencies
    lengths = np.diff(bounds)
    weights = inverse_frequencies(len(documents.norms), lengths)
    scores = greatest_scores(bounds, ids, frequencies, weights, documents.norms, form.size)
    firsts = np.cumsum(form.counts(lengths)) - form.counts(lengths)
    of_terms = np.maximum.reduceat(scores, firsts) if len(firsts) else scores
    columns: dict[str, pa.Array] = {
        layout.POSTING: blocks.encode(bounds, ids, frequencies, scores, form),
        layout.MAX_SCORE: pa.array(of_terms),
        layout.LENGTH: pa.array(lengths.astype(np.uint32)),
        layout.IMPACTS: impacts.encode(bounds, ids, frequencies, documents.codes, form),
    }
    if stretch.positions is not None and parameters.with_position:
        if parameters.format_version == 1:
            columns[layout.OLD_POSITIONS] = positions.encode_old(bounds, frequencies, stretch.positions)
        else:
            stream = positions.encode(bounds, frequencies, stretch.positions, form)
            columns |= {layout.POSITIONS: stream.values, layout.POSITION_STARTS: stream.starts}
    return columns


def _write(writer: SegmentWriter, name: str, schema: pa.Schema, columns: list[pa.Array]) -> None:
    file = writer.create(name, schema)
    file.write(pa.record_batch(columns, schema=schema))
    writer.add(name, file)


def done_in_threads(work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Process items in several threads, and yield the results in order. A single item is processed directly.

    Args:
        work: Function that processes an item.
        items: The items. The calling thread fetches up to `threads` + 1 of them ahead of the results.
        threads: Number of threads. With 0, the calling thread processes the items.
    """
    source = iter(items)
    first = next(source, None)
    second = next(source, None)
    if first is None:
        return
    if second is None or not threads:
        yield work(first)
        for each in source if second is None else chain([second], source):
            interrupts.check()
            yield work(each)
        return
    with ThreadPoolExecutor(threads, "lance_duck-index") as pool:
        waiting: deque[Future[_Result]] = deque(pool.submit(work, item) for item in (first, second))
        try:
            while waiting:
                interrupts.check()
                while len(waiting) <= threads and (item := next(source, None)) is not None:
                    waiting.append(pool.submit(work, item))
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
