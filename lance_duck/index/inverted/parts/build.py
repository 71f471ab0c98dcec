"""Building of one part of a segment. `layout` has its files."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.index.files import SegmentWriter
from lance_duck.index.inverted.build import build_partitions
from lance_duck.index.inverted.kind import settings_asked
from lance_duck.index.inverted.layout import part_file
from lance_duck.index.inverted.write import write_metadata, write_pieces
from lance_duck.index.kind import BuildOptions

PART_SHIFT: Final = 32
"""Bits of the number of a partition below those of its part."""


def build_part(rows: pa.RecordBatchReader, writer: SegmentWriter, fragment_id: int, options: BuildOptions) -> None:
    """Write the partitions of some rows, each with metadata of its own.

    Args:
        rows: See `IndexKind.build`.
        writer: Writer of files in the folder of parts.
        fragment_id: Id of the first fragment of the part, below 2**32; no other part has this fragment.
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
