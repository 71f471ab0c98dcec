"""Merges vector segments. Codes are copied, and new rows are encoded with the first segment's model.

Segments that were trained separately have different centroids. Their uncompressed vectors are assigned to the
partitions of the first segment. Compressed codes are rejected, because they are only valid for the centroids with which
they were encoded. If SQ bounds differ, codes are translated.

If only a few rows of a partition are deleted, and none are added, its graph is kept without the deleted rows.
Otherwise, the graph is rebuilt from the decoded vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import UnsupportedError
from lance_duck.index.files import SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, MergeInput
from lance_duck.index.vector.build import encode, layout_version, new_graph, new_runs, spill_vectors, stored
from lance_duck.index.vector.costs import LOST_SHARE
from lance_duck.index.vector.details import trained_rows, vector_parameters, with_trained_rows
from lance_duck.index.vector.graph.cut import living_graph
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, MAX_LEVEL, M, points
from lance_duck.index.vector.graph.rows import GraphRows, graph_rows, read_graph
from lance_duck.index.vector.layout import RECALL_FILE
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.spill import SortedRuns, Spill
from lance_duck.index.vector.training.index_spec import VectorSpec
from lance_duck.index.vector.training.model import Model
from lance_duck.index.vector.training.train import of_metric
from lance_duck.index.vector.write import StoredPartition, write_segment

_KEPT: Final = ("num_partitions", "target_partition_size", "sample_rate", "max_iters")


def merge(
    parts: Sequence[MergeInput], rows: pa.RecordBatchReader | None, writer: SegmentWriter, options: BuildOptions
) -> Details:
    """Write a segment from other segments and new rows. See `IndexKind.merge`.

    Raises:
        UnsupportedError: The segments have different index types, or they contain codes and were trained separately.
        CorruptError: A segment is corrupt.
    """
    files = [part.index.files for part in parts]
    model = _common(files, [model_of(part.index) for part in parts])
    with Spill() as spill:
        if rows is None and len(parts) == 1:
            write_segment(writer, model, _followed(parts[0], model))
            if files[0].recall is not None:  # the same vectors in the same partitions
                writer.put(RECALL_FILE, files[0].recall)
        else:
            runs = new_runs(model, options, spill)
            for part in parts:
                _take_over(part, model, runs)
            if rows is not None:
                vectors_on_disk, num_rows = spill_vectors(rows, model.metric, options, spill)
                encode(vectors_on_disk, model, runs, options, num_rows)
            write_segment(writer, model, stored(model, runs))
    before = parts[0].details
    return Details(layout_version(model.kind), with_trained_rows(_spec(model, before).details(), trained_rows(before)))


def model_of(index: Any) -> Model:
    """Return the model with which an open segment was encoded."""
    files: VectorFiles = index.files
    params: Mapping[str, Any] = next((graph.params for graph in getattr(index, "graphs", ()) if graph.num_rows), {})
    return Model(
        files.kind,
        files.metric,
        files.item,
        files.centroids,
        files.loss,
        files.bounds,
        files.codebook,
        files.rounding,
        m=_number(params.get("m"), 2, 1024, M),
        ef_construction=_number(params.get("ef_construction"), 1, 1 << 20, EF_CONSTRUCTION),
        max_level=_number(params.get("max_level"), 1, 64, MAX_LEVEL),
    )


def _common(files: Sequence[VectorFiles], models: Sequence[Model]) -> Model:
    """Return the model of the first segment, with bounds that hold for all segments."""
    first = models[0]
    for file, model in zip(files[1:], models[1:], strict=True):
        if (model.kind, model.metric, model.dim) != (first.kind, first.metric, first.dim):
            raise UnsupportedError(
                "vector segments of different kinds cannot be merged",
                where=file.directory,
                expected=f"{first.kind}, {first.metric}, dimension {first.dim}",
                found=f"{model.kind}, {model.metric}, dimension {model.dim}",
                remedy="build the index again",
            )
        same = _same_centroids(model, first) and have_same_codes(file, files[0])
        if model.storage != "FLAT" and not same:
            raise UnsupportedError(
                f"segments of {first.kind} that were trained separately cannot be merged",
                where=file.directory,
                remedy="build the index again, or build its segments with the same ivf_centroids and pq_codebook",
            )
    filled = [model.bounds for file, model in zip(files, models, strict=True) if file.num_rows] or [first.bounds]
    return replace(first, bounds=(min(low for low, _ in filled), max(high for _, high in filled)))


def have_same_codes(one: VectorFiles, other: VectorFiles) -> bool:
    """Return whether codes have the same meaning in two segments with the same centroids."""
    same = one.rounding is None if other.rounding is None else other.rounding.equals(one.rounding)
    return same and np.array_equal(one.codebook, other.codebook)


def _same_centroids(one: Model, other: Model) -> bool:
    return np.array_equal(one.centroids, other.centroids)


def _take_over(part: MergeInput, model: Model, runs: SortedRuns) -> None:
    """Add the live rows of a segment to `runs`, with the partitions and codes of the merged segment."""
    files: VectorFiles = part.index.files
    old = model_of(part.index)
    stays = _same_centroids(old, model)
    for partition in np.flatnonzero(files.partitions.lengths).tolist():
        (codes,) = files.codes([partition])
        names, lives = part.follow(files.rows()[files.partitions.rows(partition)])
        if not lives.all():
            names, codes = names[lives], codes[lives]
        places = np.full(len(names), partition)
        if model.has_graphs or not stays or old.bounds != model.bounds:
            codes = old.decode(codes, places)
            if not stays:
                codes = of_metric(codes, model.metric)
                places, _ = model.assign(codes)
            if not model.has_graphs:
                codes = model.encode(codes, places)
        runs.add(places, names, codes)


def _followed(part: MergeInput, model: Model) -> Iterator[StoredPartition | None]:
    """Yield the partitions of a segment, with current row ids or addresses."""
    files: VectorFiles = part.index.files
    for partition in range(files.num_partitions):
        names, lives = part.follow(files.rows()[files.partitions.rows(partition)])
        if not lives.any():
            yield None
            continue
        (codes,) = files.codes([partition])
        if model.has_graphs:
            yield StoredPartition(names[lives], codes[lives], _kept_graph(part.index, model, partition, codes, lives))
            continue
        names = names[lives]
        order = np.argsort(names, kind="stable")
        yield StoredPartition(names[order], codes[lives][order])


def _kept_graph(index: Any, model: Model, partition: int, codes: NDArray[Any], lives: NDArray[np.bool_]) -> GraphRows:
    """Return the graph of a partition without deleted vectors."""
    files: VectorFiles = index.files
    places = np.full(len(codes), partition)
    decoded = model.decode(codes, places)
    num_deleted = len(lives) - int(np.count_nonzero(lives))
    if num_deleted > LOST_SHARE * len(lives):
        return new_graph(model, decoded[lives])
    vectors, metric = points(decoded, model.metric)
    where = f"{files.index.path}: partition {partition}"
    assert files.graph_partitions is not None
    ids, neighbors = files.index.read(["__vector_id", "__neighbors"], files.graph_partitions.rows(partition))
    graph = read_graph(index.graphs[partition], ids, neighbors, len(codes), where=where)
    if num_deleted:
        graph, vectors = living_graph(graph, vectors, lives, metric), np.ascontiguousarray(vectors[lives])
    params = {"m": model.m, "ef_construction": model.ef_construction, "max_level": model.max_level}
    return graph_rows(graph, vectors, metric, **params)


def _spec(model: Model, details: bytes) -> VectorSpec:
    """Return the specification of a segment. Its details provide the parameters that the model does not store."""
    parameters = vector_parameters(details)
    build_parameters: dict[str, Any] = {name: parameters[name] for name in _KEPT if name in parameters}
    build_parameters["asked_partitions"] = build_parameters.get("num_partitions", 0)
    parts, bits = (len(model.codebook), model.bits) if model.storage == "PQ" else (0, 8)
    if model.rounding is not None:
        bits = model.rounding.bits
    return VectorSpec(
        model.kind,
        model.metric,
        model.dim,
        num_sub_vectors=parts,
        bits=bits,
        m=model.m,
        ef_construction=model.ef_construction,
        max_level=model.max_level,
        **build_parameters,
    )


def _number(value: Any, least: int, most: int, otherwise: int) -> int:
    """Return a number from a file if it is an integer from `least` to `most`. Otherwise, returns `otherwise`."""
    return value if isinstance(value, int) and least <= value <= most else otherwise
