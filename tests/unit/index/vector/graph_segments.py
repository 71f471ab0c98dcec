"""Handmade graph segments: flat, scalar and product codes, partition by partition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import faiss
import numpy as np
import pyarrow as pa

from lance_duck.index.files import SegmentWriter
from lance_duck.index.vector.graph.hnsw import build_graph
from lance_duck.index.vector.graph.rows import GRAPH_SCHEMA, METADATA_KEY, GraphRows, graph_rows, metadata_text
from lance_duck.store import Store
from lance_duck.wire.pb import index_pb2


@dataclass
class GraphSegment:
    """A segment before it is written; tests damage it."""

    kind: str
    metric: str
    centroids: np.ndarray
    rows: list[np.ndarray]
    codes: list[np.ndarray]
    graphs: list[GraphRows]
    about: dict[str, Any]
    codebook: np.ndarray | None = None

    @property
    def text(self) -> str:
        return metadata_text([graph.metadata for graph in self.graphs])

    def write(self, store: Store, *, text: str | None = None, version: str = "2.2") -> SegmentWriter:
        with SegmentWriter(store, version, uuid4()) as writer:
            self._write_storage(writer)
            self._write_graphs(writer, self.text if text is None else text)
        return writer

    def _write_storage(self, writer: SegmentWriter) -> None:
        codes = np.concatenate([c.T.reshape(c.shape) if "PQ" in self.kind else c for c in self.codes])
        column = {"FLAT": "flat", "SQ": "__sq_code", "PQ": "__pq_code"}[self.kind.rpartition("_")[2]]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(codes.reshape(-1)), codes.shape[1])
        batch = pa.record_batch({"_rowid": np.concatenate(self.rows).astype(np.uint64), column: lists})
        file = writer.create("auxiliary.idx", batch.schema)
        file.write(batch)
        file.add_schema_metadata("distance_type", self.metric)
        file.add_schema_metadata("storage_metadata", json.dumps([json.dumps(self.about)]))
        ivf = _ivf([len(c) for c in self.codes])
        file.add_schema_metadata("lance:ivf", str(file.add_global_buffer(ivf.SerializeToString())))
        if self.codebook is not None:
            shape = [self.codebook.shape[1], self.centroids.shape[1]]
            assert file.add_global_buffer(_tensor(self.codebook, shape).SerializeToString()) == 2
        writer.add("auxiliary.idx", file)

    def _write_graphs(self, writer: SegmentWriter, text: str) -> None:
        file = writer.create("index.idx", GRAPH_SCHEMA)
        for graph in self.graphs:
            file.write(graph.rows)
        ivf = _ivf([graph.rows.num_rows for graph in self.graphs])
        ivf.centroids_tensor.CopyFrom(_tensor(self.centroids, list(self.centroids.shape)))
        file.add_schema_metadata("lance:index", json.dumps({"type": self.kind, "distance_type": self.metric}))
        file.add_schema_metadata("lance:ivf", str(file.add_global_buffer(ivf.SerializeToString())))
        file.add_schema_metadata(METADATA_KEY, text)
        writer.add("index.idx", file)


def segment_of(
    vectors: np.ndarray, kind: str = "IVF_HNSW_FLAT", metric: str = "l2", partitions: int = 1
) -> GraphSegment:
    """Build a segment over vectors whose row ids are their positions."""
    if metric == "cosine":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centroids = vectors[:: max(len(vectors) // partitions, 1)][:partitions].copy()
    _, nearest = faiss.knn(vectors, centroids, 1, metric=_metric(metric))
    members = [np.flatnonzero(nearest[:, 0] == p) for p in range(partitions)]
    segment = GraphSegment(kind, metric, centroids, members, [], [], {})
    for part in members:
        graph = build_graph(vectors[part], metric, ef_construction=40)
        segment.graphs.append(graph_rows(graph, vectors[part], metric, ef_construction=40))
    _encode(segment, vectors, members)
    return segment


def _encode(segment: GraphSegment, vectors: np.ndarray, members: Sequence[np.ndarray]) -> None:
    dim = vectors.shape[1]
    if segment.kind.endswith("FLAT"):
        segment.about = {"dim": dim}
        segment.codes = [vectors[part] for part in members]
    elif segment.kind.endswith("SQ"):
        low, high = float(vectors.min()), float(vectors.max())
        segment.about = {"dim": dim, "num_bits": 8, "bounds": {"start": low, "end": high}}
        codes = np.clip((vectors - low) * 255 / (high - low), 0, 255).astype(np.uint8)
        segment.codes = [codes[part] for part in members]
    else:
        _encode_product(segment, vectors, members)


def _encode_product(segment: GraphSegment, vectors: np.ndarray, members: Sequence[np.ndarray]) -> None:
    dim = vectors.shape[1]
    parts = dim // 2
    less = [vectors[m] - (0 if segment.metric == "dot" else segment.centroids[p]) for p, m in enumerate(members)]
    product = faiss.ProductQuantizer(dim, parts, 8)
    product.train(np.concatenate(less).astype(np.float32))
    segment.codebook = faiss.vector_to_array(product.centroids).reshape(parts, 256, 2)
    segment.about = {"codebook_position": 2, "nbits": 8, "num_sub_vectors": parts, "dimension": dim}
    segment.about |= {"codebook_tensor": [], "transposed": True}
    segment.codes = [product.compute_codes(np.ascontiguousarray(x, np.float32)) for x in less]


def _metric(metric: str) -> int:
    return faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2


def _ivf(lengths: list[int]) -> index_pb2.IVF:
    return index_pb2.IVF(offsets=[sum(lengths[:i]) for i in range(len(lengths))], lengths=lengths)


def _tensor(values: np.ndarray, shape: list[int]) -> index_pb2.Tensor:
    return index_pb2.Tensor(data_type=2, shape=shape, data=values.astype("<f4").tobytes())
