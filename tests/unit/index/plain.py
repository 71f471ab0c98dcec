"""A kind of index that is as plain as can be: all values and row names in one file, read whole at each search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import CorruptError
from lance_duck.index.build import build_segment, builds_by_row_id
from lance_duck.index.files import SegmentFile, SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, Answer, BuildOptions, Details, MergeInput
from lance_duck.index.query import Among, Null, Query
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import IndexMetadata, index_from_proto

FILE = "plain.lance"


class PlainIndex:
    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self.nbytes = 100

    def estimate(self, query: Query) -> int | None:
        return self.file.num_rows

    def search(self, query: Query) -> Answer:
        values, rows = self.file.read([VALUE, ROW])
        mask = pc.is_null(values) if isinstance(query, Null) else pc.is_in(values, query.values)  # type: ignore[union-attr]
        found = RowSet.of(rows.filter(mask).to_numpy())
        if isinstance(query, Among) and len(query.values) > 1:
            return Answer.at_most(found)
        return Answer.exactly(found)

    def names(self) -> Iterator[NDArray[np.uint64]]:
        yield self.file.read([ROW])[0].to_numpy()

    def statistics(self) -> dict[str, Any]:
        return {"num_rows": self.file.num_rows}

    def prewarm(self) -> None:
        self.file.read([VALUE, ROW])


@dataclass
class PlainKind:
    name: str = "Plain"
    type_url: str = "/test.room.PlainIndexDetails"
    versions: range = range(2)
    rows_by: str = "version"
    reaches_into_lists = False
    new_version: int = 1
    opened: int = 0

    def supports(self, type_: pa.DataType) -> bool:
        return pa.types.is_integer(type_) or pa.types.is_string(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        return isinstance(query, Among | Null)

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> PlainIndex:
        self.opened += 1
        if details.value != b"plain":
            raise CorruptError("details", where=files.directory, found=details.value)
        file = files.open(FILE)
        file.column(VALUE, type_)
        return PlainIndex(file)

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        return self._write(rows.read_all(), writer, options)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        pieces = [] if rows is None else [rows.read_all()]
        for part in parts:
            values, names = part.index.file.read([VALUE, ROW])
            new, kept = part.follow(names.to_numpy())
            mask = pa.array(kept)
            pieces.append(pa.table({VALUE: values.filter(mask), ROW: pa.array(new[kept])}))
        return self._write(pa.concat_tables(pieces, promote_options="default"), writer, options)

    def can_follow(self) -> bool:
        return True

    def _write(self, table: pa.Table, writer: SegmentWriter, options: BuildOptions) -> Details:
        file = writer.create(FILE, pa.schema([(VALUE, table.schema.field(VALUE).type), (ROW, pa.uint64())]))
        for batch in table.to_batches():
            file.write(batch)
        writer.add(FILE, file)
        by_row_id = self.rows_by == "version" and options.stable_row_ids
        return Details(0 if by_row_id else self.new_version, b"plain")


def rows_of(snapshot: Snapshot, column: str, fragments: Iterable[int], *, by_id: bool) -> pa.RecordBatchReader:
    """Return values and row addresses or ids of live rows."""
    dataset = ld.dataset(snapshot.uri, version=snapshot.version)
    name = "_rowid" if by_id else "_rowaddr"
    chosen = [dataset.get_fragment(i) for i in fragments]
    table = dataset.scanner(columns=[column, name], fragments=chosen).to_table()
    made = pa.table({VALUE: table[column], ROW: table[name].cast(pa.uint64())})
    return pa.RecordBatchReader.from_batches(made.schema, made.to_batches())


def built(snapshot: Snapshot, kind: Any, column: str = "x", fragments: Iterable[int] | None = None) -> IndexMetadata:
    """A segment that is not committed."""
    ids = list(snapshot.fragments.ids() if fragments is None else fragments)
    rows = rows_of(snapshot, column, ids, by_id=builds_by_row_id(snapshot, kind))
    return build_segment(snapshot, column, kind, rows, ids, name=f"{column}_idx")


def indexed(snapshot: Snapshot, *segments: IndexMetadata) -> Snapshot:
    """The version with segments."""
    return commit(snapshot, CreateIndex(segments))


def changed(metadata: IndexMetadata, **fields: Any) -> IndexMetadata:
    """A segment with other fields in its message; None clears one."""
    proto = type(metadata.proto)()
    proto.CopyFrom(metadata.proto)
    for name, value in fields.items():
        if name == "details_type":
            proto.index_details.type_url = value
            continue
        proto.ClearField(name)
        if name == "fields" and value is not None:
            proto.fields.extend(value)
        elif value is not None:
            setattr(proto, name, value)
    return index_from_proto(proto, "here")


def offsets(rows: RowSet) -> dict[int, list[int]]:
    return {i: np.asarray(rows.offsets(i)).tolist() for i in rows.fragment_ids}
