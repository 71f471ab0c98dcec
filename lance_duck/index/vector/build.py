"""Builds vector segments from rows. Vectors are buffered for training, then streamed through assignment and encoding.

Buffered vectors take up to a quarter of the memory limit, and unsorted codes another quarter. Further vectors and codes
are spilled to unnamed temporary files. Only one partition at a time is completely in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import number_dtype
from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Details
from lance_duck.index.vector.costs import JOINED, PARTITIONS_TOGETHER, SMALL_GRAPH
from lance_duck.index.vector.details import with_trained_rows
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, build_graph, points
from lance_duck.index.vector.graph.join import LEAST_M, MOST_M, join_graph
from lance_duck.index.vector.graph.rows import GraphRows, graph_rows
from lance_duck.index.vector.spill import Rows, SortedRuns, Spill, VectorSpill
from lance_duck.index.vector.threads import side_by_side
from lance_duck.index.vector.training.index_spec import VectorSpec
from lance_duck.index.vector.training.model import Model
from lance_duck.index.vector.training.train import brought, of_metric, train
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.index.vector.write import StoredPartition, write_segment

_VERSIONS: Final = {"IVF_RQ": 2}

_BEFORE_GRAPHS: Final = 0.1  # share of the reported progress for all steps before graphs are built


def build_vector_segment(rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
    """Write a segment from rows. See `IndexKind.build`.

    If there are no rows, no files are written, and only the details record the specification.

    Raises:
        InvalidInputError: A parameter is invalid, or there are too few vectors to train with.
        UnsupportedError: The index type cannot be built.
    """
    type_ = rows.schema.field(VALUE).type
    spec = VectorSpec.of(options.parameters, type_)
    item = number_type(type_.value_type)
    trained = spec.trained_rows
    with Spill() as spill:
        if spec.is_trained:
            num_rows = _build_at_once(rows, writer, options, brought(spec, item), spill)
        else:
            first = _before_graphs(options) if spec.has_graphs else options
            vectors_on_disk, num_rows = spill_vectors(rows, spec.metric, first, spill)
            if num_rows:
                trained = len(vectors_on_disk)
                model = train(spec, vectors_on_disk, item)
                runs = new_runs(model, options, spill)
                encode(vectors_on_disk, model, runs, first, num_rows)
                write_segment(writer, model, _told(stored(model, runs), options, num_rows, trained))
        if num_rows and options.progress is not None:
            options.progress(num_rows)
    return Details(layout_version(spec.kind), with_trained_rows(spec.details(), trained))


def layout_version(kind: str) -> int:
    """Return the version of the file layout of an index type, such as "IVF_PQ"."""
    return _VERSIONS.get(kind, 1)


def _before_graphs(options: BuildOptions) -> BuildOptions:
    """Return options whose progress reports rows as a small share of the work, because graphs are built later."""
    report = options.progress
    return options if report is None else replace(options, progress=lambda done: report(int(done * _BEFORE_GRAPHS)))


def _told(
    partitions: Iterable[StoredPartition | None], options: BuildOptions, num_rows: int, trained: int
) -> Iterator[StoredPartition | None]:
    """Yield the partitions unchanged, and report progress for each partition with a graph."""
    done = 0
    for partition in partitions:
        if partition is not None and partition.graph is not None and options.progress is not None:
            done += len(partition.rows)
            options.progress(int(num_rows * (_BEFORE_GRAPHS + (1 - _BEFORE_GRAPHS) * done / trained)))
        yield partition


def _build_at_once(
    rows: Iterable[pa.RecordBatch], writer: SegmentWriter, options: BuildOptions, model: Model, spill: Spill
) -> int:
    """Write a segment from rows that are read only once. Returns the row count."""
    runs = new_runs(model, options, spill)
    num_rows = 0
    for batch in rows:
        num_rows += batch.num_rows
        encode([_usable(batch, model.metric)], model, runs, replace(options, progress=None), num_rows)
        if options.progress is not None:
            options.progress(num_rows)
    if num_rows:
        write_segment(writer, model, stored(model, runs))
    return num_rows


def spill_vectors(
    rows: Iterable[pa.RecordBatch], metric: str, options: BuildOptions, spill: Spill
) -> tuple[VectorSpill, int]:
    """Read all rows. Returns the searchable rows with their vectors, and the total row count."""
    vectors_on_disk = VectorSpill(options.memory_limit // 4, spill)
    num_rows = 0
    for batch in rows:
        vectors_on_disk.add(*_usable(batch, metric))
        num_rows += batch.num_rows
        if options.progress is not None:
            options.progress(num_rows // 2)  # the other half of the progress is encoding
    return vectors_on_disk, num_rows


def _usable(batch: pa.RecordBatch, metric: str) -> tuple[Rows, NDArray[Any]]:
    """Return the searchable rows of a batch, and their vectors."""
    vectors = vectors_of(batch.column(VALUE), metric=metric)
    names = batch.column(ROW).to_numpy()
    if vectors.usable.all():
        return names, vectors.values
    return names[vectors.usable], vectors.values[vectors.usable]


def new_runs(model: Model, options: BuildOptions, spill: Spill, *, by_name: bool = True) -> SortedRuns:
    """Return an empty store that sorts codes by partition, or vectors if graphs are built from them."""
    return SortedRuns(len(model.centroids), max(options.memory_limit // 4, 1), spill, by_name=by_name)


def encode(
    batches: Iterable[tuple[Rows, NDArray[Any]]], model: Model, runs: SortedRuns, options: BuildOptions, num_rows: int
) -> None:
    """Assign vectors to partitions, and add their codes to `runs`. If graphs are built, adds the vectors instead."""
    done = 0
    for names, vectors in batches:
        step = max(1, INDEX_BLOCK_BYTES // max(vectors.itemsize * model.dim, 1))
        for first in range(0, len(names), step):
            block = of_metric(vectors[first : first + step], model.metric)
            partitions, _ = model.assign(block)
            codes = block if model.has_graphs else model.encode(block, partitions)
            runs.add(partitions, names[first : first + step], codes)
            done += len(block)
            if options.progress is not None:
                options.progress((num_rows + done) // 2)


def stored(model: Model, runs: SortedRuns) -> Iterator[StoredPartition | None]:
    """Yield the partitions in order, with graphs if the index type has them. Small graphs are built in parallel."""
    count = len(model.centroids)
    if not model.has_graphs:
        for partition in range(count):
            rows = runs.take(partition)
            yield None if rows is None else StoredPartition(*rows)
        return
    for first in range(0, count, PARTITIONS_TOGETHER):
        partitions = range(first, min(first + PARTITIONS_TOGETHER, count))
        pieces = [runs.take(partition) for partition in partitions]
        small = [i for i, piece in enumerate(pieces) if piece is not None and len(piece[0]) < SMALL_GRAPH]
        tasks = [partial(_with_graph, model, first + i, pieces[i]) for i in small]
        graphs = dict(zip(small, side_by_side(lambda task: task(), tasks), strict=True))
        for i, piece in enumerate(pieces):
            yield graphs[i] if i in graphs else _with_graph(model, first + i, piece)


def _with_graph(model: Model, partition: int, piece: tuple[Rows, NDArray[Any]] | None) -> StoredPartition | None:
    """Return a partition with its codes and its graph. Returns None for a partition without vectors."""
    if piece is None:
        return None
    names, vectors = piece
    codes = model.encode(vectors, np.full(len(vectors), partition))
    return StoredPartition(names, codes, new_graph(model, vectors))


def new_graph(model: Model, vectors: Any) -> GraphRows:
    """Build the graph of a partition. Large graphs are joined from near neighbours. Others are built by insertion."""
    parameters = {"m": model.m, "ef_construction": model.ef_construction, "max_level": model.max_level}
    dense, metric = points(vectors, model.metric)
    graph = join_graph(dense, **parameters) if _is_joined(model, len(dense)) else None
    graph = graph or build_graph(dense, metric, **parameters)
    return graph_rows(graph, dense, metric, **parameters)


def _is_joined(model: Model, num_vectors: int) -> bool:
    """Return whether to join a graph from near neighbours. Unusual parameters require insertion."""
    fits = LEAST_M <= model.m <= MOST_M and model.ef_construction <= 2 * EF_CONSTRUCTION
    return num_vectors >= JOINED and model.metric != "dot" and fits


def number_type(type_: pa.DataType) -> np.dtype[Any]:
    """Return the dtype in which a segment stores numbers, given the number type of the column."""
    if type_ == pa.uint8() or pa.types.is_floating(type_):
        return number_dtype(type_)
    return np.dtype(np.float32)
