"""The kind of all vector indexes: IVF_FLAT, IVF_SQ, IVF_PQ, IVF_RQ, and the first three with HNSW graphs.

_indices/{uuid}/index.idx, auxiliary.idx    see `index.vector.layout`

Details are a VectorIndexDetails message, with version 1, or 2 for IVF_RQ. Details of older writers are empty, with
version 0 or 1. Rows are identified by stable row ids if the table has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck import lazy
from lance_duck.errors import UnsupportedError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import VALUE, BuildOptions, Details, MergeInput
from lance_duck.index.query import Query
from lance_duck.index.vector.multivectors import is_multivector, one_by_one, vector_type
from lance_duck.index.vector.one_file import vector_files
from lance_duck.index.vector.search.graphs import GraphIndex
from lance_duck.index.vector.search.hamming import HammingIndex
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.index.vector.threads import safe_after_fork
from lance_duck.index.vector.vectors import has_byte_items, is_vector
from lance_duck.wire.pb import index_pb2

if TYPE_CHECKING:
    from lance_duck.index.vector import build as building
    from lance_duck.index.vector import merge as merging
    from lance_duck.index.vector.training import index_spec
else:
    building, merging = lazy.modules(globals(), "lance_duck.index.vector", "build", "merge")
    index_spec = lazy.modules(globals(), "lance_duck.index.vector.training", "index_spec")

_COMPRESSIONS: Final = {"flat": "FLAT", "sq": "SQ", "pq": "PQ", "rq": "RQ"}


class VectorKind:
    """The kind of vector indexes. `open` returns a `contract.VectorIndex`. Predicates are not supported."""

    name: str = "Vector"
    type_url: str = "/lance.index.pb.VectorIndexDetails"
    versions: range = range(3)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a storage type can be indexed: vectors, or lists of vectors.

        The numbers of vectors are floats, bfloat16 or unsigned bytes. Vectors in lists cannot have bytes.
        """
        return is_vector(type_) or (is_multivector(type_) and not has_byte_items(vector_type(type_)))

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return False: vector indexes do not support predicates."""
        return False

    @safe_after_fork
    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> Any:
        """Open a segment and read its centroids. The result is a `contract.VectorIndex`."""
        opened = vector_files(files)
        dim = vector_type(type_).list_size
        if opened.dim != dim:
            raise UnsupportedError(
                "the segment has a different dimension", where=files.directory, expected=dim, found=opened.dim
            )
        if opened.metric == "hamming":
            return HammingIndex(opened)
        return GraphIndex(opened) if opened.has_graphs else IvfIndex(opened)

    @safe_after_fork
    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment from rows."""
        index_spec.check_metric(rows.schema.field(VALUE).type, options.parameters)
        return building.build_vector_segment(one_by_one(rows), writer, options)

    @safe_after_fork
    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        return merging.merge(parts, None if rows is None else one_by_one(rows), writer, options)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row addresses."""
        return True

    def name_of(self, details: bytes) -> str | None:
        """Return the index type in a details message, such as "IVF_PQ". Returns None if it is not declared."""
        try:
            message = index_pb2.VectorIndexDetails.FromString(details)
        except DecodeError:
            return None
        storage = _COMPRESSIONS.get(message.WhichOneof("compression") or "")
        if storage is None:
            return None
        return f"IVF_HNSW_{storage}" if message.HasField("hnsw_index_config") else f"IVF_{storage}"


VECTOR: Final[VectorKind] = VectorKind()
