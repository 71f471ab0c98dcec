"""The statistics of a vector segment, with the fields of pylance's index_statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_duck.index.vector.graph.rows import GraphMetadata
from lance_duck.index.vector.layout import INDEX_FILE
from lance_duck.index.vector.open import VectorFiles


def figures(files: VectorFiles, graphs: Sequence[GraphMetadata] = ()) -> dict[str, Any]:
    """Return the statistics of a segment: index_type, metric_type, num_partitions, partition sizes and loss.

    The statistics include the graph of the first non-empty partition.
    """
    sub_index: dict[str, Any] = {}
    first = next((graph for graph in graphs if graph.num_rows), None)
    if first is not None:
        sub_index = {"entry_point": first.entry_point, "params": dict(first.params)}
        sub_index["level_offsets"] = list(first.level_offsets)
    sub_index |= files.metadata
    for left_out in ("codebook_position", "codebook_tensor"):
        sub_index.pop(left_out, None)
    # With the metric cosine, PQ codes are compared by l2.
    metric = "l2" if (files.storage, files.metric) == ("PQ", "cosine") else files.metric
    sub_index |= {"index_type": "HNSW" if files.has_graphs else files.storage, "metric_type": metric}
    return {
        "index_type": files.kind,
        "uuid": files.directory.rpartition("/")[2],
        "uri": f"{files.directory}/{INDEX_FILE}",
        "metric_type": files.metric,
        "num_partitions": files.num_partitions,
        "sub_index": sub_index,
        "partitions": [{"size": size} for size in files.partitions.lengths.tolist()],
        "loss": files.loss,
        "index_file_version": files.file_version,
    }
