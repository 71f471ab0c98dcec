"""Writes the files of a vector segment. `index.vector.layout` describes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.file.write.writer import FileWriter
from lance_duck.index.files import SegmentWriter
from lance_duck.index.vector.codecs.rq import Rounding
from lance_duck.index.vector.graph.rows import GRAPH_SCHEMA, METADATA_KEY, GraphRows, metadata_text
from lance_duck.index.vector.layout import COLUMNS, INDEX_FILE, ROW_ID, STORAGE_FILE
from lance_duck.index.vector.spill import Rows
from lance_duck.index.vector.training.model import Model
from lance_duck.wire.pb import index_pb2

_NO_GRAPHS: Final = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
TENSORS: Final = MappingProxyType({"f2": 1, "f4": 2, "f8": 3, "u1": 4})
"""Tensor data type codes, by numpy dtype name."""


@dataclass(frozen=True)
class StoredPartition:
    """A partition that is ready to be written.

    Attributes:
        rows: uint64 (n,), row ids or addresses.
        codes: Codes (n, code_width), row by row.
        graph: Graph of the partition. None if the partition is empty, or if the index type does not have graphs.
    """

    rows: Rows
    codes: NDArray[Any]
    graph: GraphRows | None = None


def write_segment(writer: SegmentWriter, model: Model, partitions: Iterator[StoredPartition | None]) -> None:
    """Write both files of a segment.

    Args:
        writer: Writer of the segment's files.
        model: Model of the codes.
        partitions: The partitions of the model in order. None for an empty partition.

    Raises:
        StoreError: The disk or the service failed.
    """
    storage = writer.create(STORAGE_FILE, _storage_schema(model))
    index = writer.create(INDEX_FILE, GRAPH_SCHEMA if model.has_graphs else _NO_GRAPHS)
    lengths, graph_lengths, graphs = [], [], []
    for stored in partitions:
        graph = None if stored is None else stored.graph
        lengths.append(0 if stored is None else len(stored.rows))
        graph_lengths.append(0 if graph is None else graph.rows.num_rows)
        graphs.append(graph)
        if stored is not None:
            storage.write(_batch(model, stored))
        if graph is not None:
            index.write(graph.rows)
    _finish_storage(storage, model, lengths)
    writer.add(STORAGE_FILE, storage)
    _finish_index(index, model, graph_lengths, graphs)
    writer.add(INDEX_FILE, index)


def _storage_schema(model: Model) -> pa.Schema:
    item = pa.from_numpy_dtype(model.code_type)
    nullable = model.storage != "FLAT" or model.metric == "hamming"
    if model.rounding is not None:
        return pa.schema([pa.field(ROW_ID, pa.uint64()), *model.rounding.fields])
    codes = pa.field(COLUMNS[model.storage], pa.list_(pa.field("item", item), model.code_width), nullable=nullable)
    return pa.schema([pa.field(ROW_ID, pa.uint64()), codes])


def _batch(model: Model, stored: StoredPartition) -> pa.RecordBatch:
    schema = _storage_schema(model)
    columns = _columns(model, stored.codes)
    arrays = [_array(columns[field.name], field.type) for field in list(schema)[1:]]
    return pa.record_batch([pa.array(stored.rows), *arrays], schema)


def _columns(model: Model, codes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Convert the codes of a partition to file columns, by name."""
    if model.rounding is not None:
        return model.rounding.columns(codes)
    if model.storage == "PQ":
        codes = codes.T  # the first bytes of all codes of the partition, then the second bytes, …
    return {COLUMNS[model.storage]: np.ascontiguousarray(codes, model.code_type)}


def _array(numbers: NDArray[Any], type_: pa.DataType) -> pa.Array:
    items = pa.array(numbers.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(items, type=type_) if pa.types.is_fixed_size_list(type_) else items


def _finish_storage(file: FileWriter, model: Model, lengths: list[int]) -> None:
    about: dict[str, Any] = {"dim": model.dim}
    ivf = file.add_global_buffer(_ivf(lengths).SerializeToString())
    if model.storage == "SQ":
        about |= {"num_bits": 8, "bounds": {"start": model.bounds[0], "end": model.bounds[1]}}
    elif model.rounding is not None:
        about = _rounding(file, model.rounding)
    elif model.storage == "PQ":
        about = {
            "codebook_position": file.add_global_buffer(_codebook(model).SerializeToString()),
            "nbits": model.bits,
            "num_sub_vectors": len(model.codebook),
            "dimension": model.dim,
            "codebook_tensor": [],
            "transposed": True,
        }
    file.add_schema_metadata("distance_type", model.metric)
    file.add_schema_metadata("lance:ivf", str(ivf))
    file.add_schema_metadata("storage_metadata", _json([_json(about)]))


def _rounding(file: FileWriter, rounding: Rounding) -> dict[str, Any]:
    """Write the RQ rotation matrix if there is one. Returns the RQ metadata."""
    rotation = rounding.rotation
    is_fast = rotation.kind == "fast"
    matrix = None if is_fast else _tensor(rotation.parameters, rotation.parameters.shape).SerializeToString()
    return {
        "rotate_mat_position": None if matrix is None else file.add_global_buffer(matrix),
        "fast_rotation_signs": rotation.parameters.tolist() if is_fast else None,
        "rotation_type": rotation.kind,
        "code_dim": rounding.dim,
        "num_bits": rounding.bits,
        "packed": True,
        "query_estimator": "residual" if rounding.of_residual else "raw_query",
    }


def _finish_index(file: FileWriter, model: Model, lengths: list[int], graphs: list[GraphRows | None]) -> None:
    message = _ivf(lengths)
    message.centroids_tensor.CopyFrom(_tensor(model.centroids.astype(model.item), model.centroids.shape))
    if model.loss is not None:
        message.loss = model.loss
    file.add_schema_metadata("lance:index", _json({"type": model.kind, "distance_type": model.metric}))
    file.add_schema_metadata("lance:ivf", str(file.add_global_buffer(message.SerializeToString())))
    if model.has_graphs:
        file.add_schema_metadata(METADATA_KEY, _graph_texts(graphs))
    else:
        file.add_schema_metadata("lance:flat", _json([""] * len(lengths)))


def _graph_texts(graphs: list[GraphRows | None]) -> str:
    if all(graph is not None for graph in graphs):
        return metadata_text([graph.metadata for graph in graphs if graph is not None])
    return _json(["" if graph is None else graph.metadata.to_json() for graph in graphs])


def _ivf(lengths: list[int]) -> index_pb2.IVF:
    offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
    return index_pb2.IVF(offsets=offsets.tolist(), lengths=lengths)


def _codebook(model: Model) -> index_pb2.Tensor:
    codebook = model.codebook.astype(model.item)
    return _tensor(codebook, (codebook.shape[1], model.dim))


def _tensor(numbers: NDArray[Any], shape: tuple[int, ...]) -> index_pb2.Tensor:
    little = numbers.astype(numbers.dtype.newbyteorder("<"))
    kind = TENSORS[f"{numbers.dtype.kind}{numbers.dtype.itemsize}"]
    return index_pb2.Tensor(data_type=kind, shape=list(shape), data=little.tobytes())  # type: ignore[arg-type]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
