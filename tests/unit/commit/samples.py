"""Operations on a table with columns a (0), b (1), c (2) and fragments 0 and 1, of ten rows each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from lance_duck.commit import (
    Append,
    CreateIndex,
    DataOverlay,
    DataOverlayGroup,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
)
from lance_duck.rows import roaring_bytes
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import DataFile, DeletionFile, Fragment
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow

ROWS = 10


def schema(names: str = "abc") -> Schema:
    whole = schema_from_arrow(pa.schema([(name, pa.int64()) for name in "abc"]))
    return schema_from_arrow(pa.schema([(name, pa.int64()) for name in names]), existing=whole)


def data_file(path: str, *fields: int) -> DataFile:
    return DataFile(path, fields, tuple(range(len(fields))), (2, 2), 100, None)


def fragment(fragment_id: int = 0, *files: DataFile, deleted: int = 0, rows: int = ROWS, **parts: Any) -> Fragment:
    deletion = DeletionFile("arrow", 1, deleted, deleted, None) if deleted else None
    present = files or (data_file(f"{fragment_id}.lance", 0, 1, 2),)
    sequences = {"row_ids": None, "created_at": None, "last_updated_at": None} | parts
    return Fragment(fragment_id, present, deletion, rows, **sequences)


def index(
    name: str, *fields: int, covers: tuple[int, ...] | None = (0,), number: int = 1, **parts: Any
) -> IndexMetadata:
    proto = table_pb2.IndexMetadata(
        uuid={"uuid": UUID(int=number).bytes}, name=name, fields=fields, dataset_version=1, **parts
    )
    if covers is not None:
        proto.fragment_bitmap = roaring_bytes(np.array(covers, np.uint32))
    return index_from_proto(proto, name)


def rewritten_column(fragment_id: int) -> Fragment:
    """A fragment with another file for b."""
    return fragment(fragment_id, data_file(f"{fragment_id}.lance", 0, -2, 2), data_file("new-b.lance", 1))


def replacement(fragment_id: int) -> DataReplacement:
    return DataReplacement([DataReplacementGroup(fragment_id, data_file("r.lance", 1))])


def overlay(fragment_id: int, *offsets: int) -> DataOverlay:
    bitmap = roaring_bytes(np.array(offsets, np.uint32))
    return DataOverlay([DataOverlayGroup(fragment_id, [Overlay(data_file("o.lance", 1), (bitmap,), 0, True)])])


def rewrite(fragment_id: int) -> Rewrite:
    return Rewrite([RewriteGroup([fragment(fragment_id)], [fragment(7, data_file("w.lance", 0, 1, 2))])])


NEW = fragment(0, data_file("new.lance", 0, 1, 2))

OPERATIONS: Mapping[str, Operation] = {
    "Append": Append([NEW]),
    "Append of c": Append([fragment(0, data_file("c.lance", 2))]),
    "Append of a and c": Append([fragment(0, data_file("ac.lance", 0, 2))]),
    "Delete f0": Delete([fragment(0, deleted=1)], []),
    "Delete f1": Delete([fragment(1, deleted=1)], []),
    "Delete frag0 whole": Delete([], [0]),
    "UpdateRows f0": Update(updated_fragments=[fragment(0, deleted=1)], new_fragments=[NEW]),
    "UpdateRows f1": Update(updated_fragments=[fragment(1, deleted=1)], new_fragments=[NEW]),
    "UpdateCols(b) f0": Update(
        updated_fragments=[rewritten_column(0)], fields_modified=[1], update_mode="rewrite_columns"
    ),
    "Overwrite": Overwrite(schema(), [NEW]),
    "CreateIndex a": CreateIndex([index("on a", 0)]),
    "CreateIndex b": CreateIndex([index("on b", 1)]),
    "Rewrite f0": rewrite(0),
    "Rewrite f1": rewrite(1),
    "Merge(addcol)": Merge([fragment(0), fragment(1)], schema()),
    "Project(drop c)": Project(schema("ab")),
    "Restore": Restore(1),
    "DataRepl b f0": replacement(0),
    "DataRepl b f1": replacement(1),
    "UpdateConfig k1": UpdateConfig(UpdateMap({"k1": "v"})),
    "UpdateConfig k2": UpdateConfig(UpdateMap({"k2": "v"})),
    "UpdateConfig schema_md": UpdateConfig(schema_metadata_updates=UpdateMap({"k": "v"})),
    "UpdateConfig without k1": UpdateConfig(UpdateMap({"k1": None})),
    "UpdateConfig table_md": UpdateConfig(table_metadata_updates=UpdateMap({"k": "v"})),
    "UpdateConfig field_md a": UpdateConfig(field_metadata_updates={0: UpdateMap({"k": "v"})}),
    "UpdateConfig field_md b": UpdateConfig(field_metadata_updates={1: UpdateMap({"k": "v"})}),
    "Merge of nullable": Merge([fragment(0), fragment(1)], schema(), preserves_nullability=True),
    "Project that keeps": Project(schema("ab"), preserves_nullability=True),
    "ReserveFragments": ReserveFragments(3),
    "UpdateBases": UpdateBases([BasePath(0, "n", False, "/other")]),
    "CreateIndex a, coverage unknown": CreateIndex([index("other", 0, covers=None)]),
    "DataOverlay b f0": overlay(0, 3),
    "DataOverlay b f1": overlay(1, 3),
    "Overwrite with k1": Overwrite(schema(), [NEW], {"k1": "v"}),
}
