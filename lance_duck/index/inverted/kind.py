"""The inverted index kind. `layout` describes the files, and `settings` the details and the parameters.

Segments store stable row ids if the table has them. The kind does not support predicates, only full-text queries
(`scan/text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import is_list, is_text
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted.build import build_partitions, memory_limit
from lance_duck.index.inverted.contents import PartitionContents
from lance_duck.index.inverted.costs import HELD_SHARE
from lance_duck.index.inverted.merge import living_parts, merged_parts, whole_partition
from lance_duck.index.inverted.open import open_segment
from lance_duck.index.inverted.settings import LIST_ELEMENT, InvertedSettings, is_by_element
from lance_duck.index.inverted.write import write_metadata, write_pieces
from lance_duck.index.kind import VALUE, BuildOptions, Details, MergeInput
from lance_duck.index.query import Query


class InvertedKind:
    """See `IndexKind`."""

    name: str = "Inverted"
    type_url: str = "/lance.table.InvertedIndexDetails"
    versions: range = range(4)
    rows_by: str = "id"
    reaches_into_lists: bool = True

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a storage type can be indexed: strings, JSON (stored as strings), and lists of strings."""
        return isinstance(type_, pa.JsonType) or is_text(type_) or (is_list(type_) and is_text(type_.value_type))

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return False: the kind does not support predicates."""
        return False

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> Any:
        """Open a segment, an `InvertedSegment`."""
        return open_segment(files, is_by_element(details.value), is_list=is_list(type_))

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment from rows.

        Raises:
            InvalidInputError: The options make list elements documents, but the column is not a list.
        """
        settings = settings_asked(rows.schema, options)
        return _write(writer, settings, (inversion.pieces() for inversion in build_partitions(rows, settings, options)))

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows, in the layout of the newest segment.

        Raises:
            UnsupportedError: The segments' analysers differ, or the analyser of new rows is not supported.
        """
        newest = parts[-1].index
        if not all(is_alike(part.index, newest) for part in parts):
            raise UnsupportedError(
                "segments with different full-text parameters cannot be merged", remedy="build the index again"
            )
        settings = settings_of(newest)
        limit = memory_limit(settings, options) // HELD_SHARE
        by_address = not options.stable_row_ids
        living = chain.from_iterable(living_parts(part, limit, by_address=by_address) for part in parts)
        if rows is not None:
            settings.parameters.require_support()
            made = (inversion.whole() for inversion in build_partitions(rows, settings, options))
            living = chain(living, map(whole_partition, made))
        details = _write(writer, settings, merged_parts(living, limit))
        # pylance rejects an index whose segments have different details, even if they are equivalent.
        return replace(details, value=parts[-1].details)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row addresses."""
        return True


def settings_asked(schema: pa.Schema, options: BuildOptions) -> InvertedSettings:
    """Return the settings in the options of a build. Raises like `InvertedSettings.of`.

    Raises:
        InvalidInputError: The options make list elements documents, but the column is not a list.
    """
    settings = InvertedSettings.of(options.parameters)
    if settings.form.document_granularity == LIST_ELEMENT and not is_list(schema.field(VALUE).type):
        raise InvalidInputError(
            "document_granularity LIST_ELEMENT needs a column of lists",
            expected="lists of strings",
            found=schema.field(VALUE).type,
        )
    return settings


def settings_of(index: Any) -> InvertedSettings:
    """Return the settings with which an open segment was built."""
    return InvertedSettings.of_segment(index.parameters)


def is_alike(one: Any, other: Any) -> bool:
    """Return whether two open segments have the same analyser settings, and both or neither store positions."""
    first, second = settings_of(one), settings_of(other)
    return (first.parameters, first.form.with_position, first.form.document_granularity) == (
        second.parameters,
        second.form.with_position,
        second.form.document_granularity,
    )


def _write(
    writer: SegmentWriter, settings: InvertedSettings, partitions: Iterable[Iterable[PartitionContents]]
) -> Details:
    count = 0
    for pieces in partitions:
        write_pieces(writer, count, pieces, settings.form)
        count += 1
    write_metadata(writer, list(range(count)), settings.form)
    return settings.details()


INVERTED: Final[InvertedKind] = InvertedKind()
