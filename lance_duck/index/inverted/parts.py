"""Parts of a segment. Several processes write parts, and one process joins them. `layout` describes the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.errors import InvalidInputError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted.build import build_partitions
from lance_duck.index.inverted.kind import INVERTED, settings_asked, settings_of
from lance_duck.index.inverted.layout import InvertedParameters, inverted_parameters, part_file, part_number
from lance_duck.index.inverted.open import InvertedSegment
from lance_duck.index.inverted.write import write_metadata, write_pieces
from lance_duck.index.kind import BuildOptions, Details, MergeInput, Rows

PART_SHIFT: Final = 32
"""The bits of a partition number below this one count the partitions in a part. The higher bits identify the part."""
_NO_FRAGMENTS: Final = np.empty(0, np.uint32)


def build_part(rows: pa.RecordBatchReader, writer: SegmentWriter, fragment_id: int, options: BuildOptions) -> None:
    """Write rows as partitions. Each partition has its own metadata file.

    Args:
        rows: See `IndexKind.build`.
        writer: Writer for the folder of the parts.
        fragment_id: Id of the first fragment of the part, below 2**32. Parts have disjoint fragments.
        options: See `IndexKind.build`.

    Raises:
        InvalidInputError, WrongTypeError, UnsupportedError: See `settings_asked`.
    """
    settings = settings_asked(rows.schema, options)
    first = fragment_id << PART_SHIFT
    number = first
    for number, inversion in enumerate(build_partitions(rows, settings, options), start=first):
        write_pieces(writer, number, inversion.pieces(), settings.form)
        write_metadata(writer, [number], settings.form, name=part_file(number))
    if not writer.files:
        write_metadata(writer, [], settings.form, name=part_file(number, is_empty=True))


def join_parts(
    names: Iterable[str],
    files: SegmentReader,
    writer: SegmentWriter,
    options: BuildOptions,
    progress: Callable[[int, int], Any] | None = None,
) -> Details:
    """Join parts into a segment. The files of the parts remain.

    Args:
        names: Names of all files of the parts.
        files: Reader of these files.
        writer: Writer of the segment.
        options: The memory limit.
        progress: Called at the start with 0 and the total document count, and at the end with this count twice.

    Raises:
        InvalidInputError: `names` does not contain any part, or two parts share a row.
        UnsupportedError: The parts were made with different parameters.
        NotFoundError, CorruptError: Files are missing, or contradict themselves.
    """
    present = set(names)
    parts, empty = _opened(present, files)
    _check_disjoint(parts, files.directory)
    if not parts:
        if not empty:
            raise InvalidInputError(
                "the index segment does not have parts", where=files.directory, found=sorted(present)[:3]
            )
        write_metadata(writer, [], empty[-1])
        return settings_of(InvertedSegment(files, empty[-1], [], _NO_FRAGMENTS)).details()
    inputs = [MergeInput(part, _follow, settings_of(part).details().value) for part in parts]
    total = sum(part.num_documents for part in parts)
    if progress is not None:
        progress(0, total)
    details = INVERTED.merge(inputs, None, writer, options)
    if progress is not None:
        progress(total, total)
    return details


def _opened(names: set[str], files: SegmentReader) -> tuple[list[InvertedSegment], list[InvertedParameters]]:
    """Return the non-empty parts in order of their first fragments, and the parameters of the empty parts."""
    numbers = sorted({number for name in names if (number := part_number(name)) is not None})
    numbers_of: dict[int, list[int]] = {}
    parameters: dict[int, InvertedParameters] = {}
    empty = []
    for number in numbers:
        name = part_file(number)
        if name in names:
            file = files.open(name)
            parameters.setdefault(number >> PART_SHIFT, inverted_parameters(file.metadata, file.path))
            numbers_of.setdefault(number >> PART_SHIFT, []).append(number)
        elif (name := part_file(number, is_empty=True)) in names:
            file = files.open(name)
            empty.append(inverted_parameters(file.metadata, file.path))
    return [InvertedSegment(files, parameters[part], each, _NO_FRAGMENTS) for part, each in numbers_of.items()], empty


def _check_disjoint(parts: Sequence[InvertedSegment], where: str) -> None:
    """Reject parts that share a row, because searches would find this row twice."""
    row_ids = joined((distinct(_row_ids(part)) for part in parts), np.uint64)
    row_ids.sort()
    twice = row_ids[1:][row_ids[1:] == row_ids[:-1]]
    if len(twice):
        raise InvalidInputError(
            "the parts of an index segment overlap",
            where=where,
            expected="each row in one part",
            found=f"row {twice[0]} and {len(twice) - 1} more",
            remedy="assign each fragment to one worker, and build the index with a new uuid",
        )


def _row_ids(part: InvertedSegment) -> NDArray[np.uint64]:
    return joined((partition.documents.row_ids for partition in part.partitions), np.uint64)


def _follow(names: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    return names, np.ones(len(names), np.bool_)
