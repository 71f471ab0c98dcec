"""Handmade vector segments from plain arrays: readers under test receive only the files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.vector.codecs.rotation import Rotation
from lance_duck.index.vector.codecs.rq import Rounding
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.training.model import Model
from lance_duck.index.vector.write import StoredPartition, write_segment
from lance_duck.store import open_store
from lance_duck.wire.pb import index_pb2

NAMES = {"FLAT": "flat", "SQ": "__sq_code", "PQ": "__pq_code"}


def clustered(rows: int, dim: int, clusters: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors around some centres, and the centres."""
    rng = np.random.default_rng(seed)
    centres = (2 * rng.normal(size=(clusters, dim))).astype(np.float32)
    vectors = centres[rng.integers(0, clusters, rows)] + rng.normal(size=(rows, dim))
    return vectors.astype(np.float32), centres


def tensor(values: np.ndarray) -> index_pb2.Tensor:
    types = {"float16": 1, "float32": 2, "float64": 3, "uint8": 4}
    return index_pb2.Tensor(data_type=types[values.dtype.name], shape=values.shape, data=values.tobytes())


@dataclass
class Written:
    """A segment before it is written; `write` stores all changes unchecked.

    `codes` are by row in partition order, with `lengths` rows each.
    """

    codes: np.ndarray
    lengths: list[int]
    centroids: np.ndarray
    storage: str = "FLAT"
    metric: str = "l2"
    metadata: dict[str, Any] = field(default_factory=dict)
    codebook: np.ndarray | None = None
    rows: np.ndarray | None = None
    offsets: list[int] | None = None
    index: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path, *, ivf: bytes | None = None) -> SegmentReader:
        store = open_store(str(folder))
        offsets = self.offsets or [0, *np.cumsum(self.lengths)[:-1].tolist()]
        with SegmentWriter(store) as writer:
            index = writer.create("index.idx", pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)]))
            about = {"type": f"IVF_{self.storage}", "distance_type": self.metric} | self.index
            index.add_schema_metadata("lance:index", json.dumps(about))
            zeros = [0] * len(self.lengths)
            message = index_pb2.IVF(offsets=zeros, lengths=zeros, centroids_tensor=tensor(self.centroids), loss=1.5)
            place = index.add_global_buffer(message.SerializeToString() if ivf is None else ivf)
            index.add_schema_metadata("lance:ivf", str(place))
            writer.add("index.idx", index)
            self._write_storage(writer, offsets)
        return SegmentReader(store, writer.directory)

    def _write_storage(self, writer: SegmentWriter, offsets: list[int]) -> None:
        rows = np.arange(len(self.codes), dtype=np.uint64) if self.rows is None else self.rows
        stored = self.codes
        if self.storage == "PQ" and self.metadata.get("transposed"):
            ends = np.cumsum(self.lengths)[:-1]
            stored = np.concatenate([part.T.reshape(part.shape) for part in np.split(self.codes, ends)])
        width = stored.shape[1]
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(stored).reshape(-1)), width)
        table = pa.table({"_rowid": rows, NAMES[self.storage]: column})
        file = writer.create("auxiliary.idx", table.schema)
        for batch in table.to_batches():
            file.write(batch)
        message = index_pb2.IVF(offsets=offsets, lengths=self.lengths)
        texts = {"distance_type": self.metric, "storage_metadata": json.dumps([json.dumps(self.metadata)])}
        texts["lance:ivf"] = str(file.add_global_buffer(message.SerializeToString()))
        if self.codebook is not None:
            dim = self.centroids.shape[1]
            book = tensor(self.codebook.reshape(-1, dim))
            file.add_global_buffer(book.SerializeToString())
        for key, text in (texts | self.texts).items():
            file.add_schema_metadata(key, text)
        writer.add("auxiliary.idx", file)


@dataclass(frozen=True)
class Made:
    """A segment and its decoded codes: `decoded` by position, normalised for cosine."""

    written: Written
    decoded: np.ndarray

    def open(self, folder: Path) -> VectorFiles:
        return VectorFiles(self.written.write(folder))


def made(storage: str, metric: str = "l2", *, rows: int = 600, dim: int = 16, bits: int = 8) -> Made:
    """A segment of clustered vectors, each in the partition of its nearest centre; the last partition is empty."""
    vectors, centres = clustered(rows, dim)
    vectors = vectors if metric != "cosine" else vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centroids = np.vstack([centres, np.full((1, dim), 100, np.float32)]).astype(np.float32)
    if metric == "dot":
        nearest = (vectors @ centroids[:-1].T).argmax(axis=1)
    else:
        nearest = ((vectors[:, None] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    order = np.argsort(nearest, kind="stable")
    vectors, nearest = vectors[order], nearest[order]
    lengths = np.bincount(nearest, minlength=len(centroids)).tolist()
    names = (7 * order + 3).astype(np.uint64)
    if storage == "FLAT":
        written = Written(vectors, lengths, centroids, storage, metric, {"dim": dim}, rows=names)
        return Made(written, vectors)
    if storage == "SQ":
        return _scalar(vectors, lengths, centroids, metric, names)
    return _product(vectors, nearest, lengths, centroids, metric, names, bits)


def _scalar(vectors: np.ndarray, lengths: list[int], centroids: np.ndarray, metric: str, names: np.ndarray) -> Made:
    start, end = float(vectors.min()), float(vectors.max())
    codes = ((vectors - start) * 255 / (end - start)).astype(np.uint8)
    metadata = {"dim": vectors.shape[1], "num_bits": 8, "bounds": {"start": start, "end": end}}
    decoded = (start + (codes + 0.5) * (end - start) / 255).astype(np.float32)
    return Made(Written(codes, lengths, centroids, "SQ", metric, metadata, rows=names), decoded)


def _product(
    vectors: np.ndarray,
    nearest: np.ndarray,
    lengths: list[int],
    centroids: np.ndarray,
    metric: str,
    names: np.ndarray,
    bits: int,
) -> Made:
    rng = np.random.default_rng(1)
    dim, parts = vectors.shape[1], 4
    base = np.zeros_like(vectors) if metric == "dot" else centroids[nearest]
    left = (vectors - base).reshape(len(vectors), parts, dim // parts)
    chosen = rng.choice(len(vectors), 1 << bits, replace=False)
    book = np.ascontiguousarray(left[chosen].transpose(1, 0, 2))
    codes = ((left[:, :, None] - book[None]) ** 2).sum(axis=3).argmin(axis=2).astype(np.uint8)
    decoded = base + book[np.arange(parts), codes].reshape(len(vectors), dim)
    if bits == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    metadata = {"codebook_position": 2, "nbits": bits, "num_sub_vectors": parts, "dimension": dim, "transposed": True}
    written = Written(codes, lengths, centroids, "PQ", metric, metadata, book, names)
    return Made(written, decoded.astype(np.float32))


@dataclass(frozen=True)
class Rotated:
    """A segment of IVF_RQ: its rotation, the bits of a number, the metric and the numbers of a vector."""

    rotation: str
    bits: int
    metric: str = "l2"
    dim: int = 96

    @property
    def rounding(self) -> Rounding:
        if self.rotation == "fast":
            return Rounding(self.bits, Rotation.drawn(self.dim))
        rng = np.random.default_rng(self.dim)
        matrix = np.linalg.qr(rng.standard_normal((self.dim, self.dim)))[0].astype(np.float32)
        return Rounding(self.bits, Rotation("matrix", matrix), of_residual=self.bits == 1)


def rounded_segment(folder: Path, case: Rotated, rows: int = 700) -> tuple[np.ndarray, VectorFiles]:
    """Clustered vectors, normalised for cosine, and a segment of their codes."""
    vectors, centres = clustered(rows, case.dim)
    if case.metric == "cosine":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    model = Model("IVF_RQ", case.metric, np.dtype("f4"), centres, rounding=case.rounding)
    partitions, _ = model.assign(vectors)
    codes = model.encode(vectors, partitions)
    members = [np.flatnonzero(partitions == number) for number in range(len(centres))]
    store = open_store(str(folder))
    with SegmentWriter(store) as writer:
        write_segment(writer, model, (StoredPartition(some.astype(np.uint64), codes[some]) for some in members))
    return vectors, VectorFiles(SegmentReader(store, writer.directory))
