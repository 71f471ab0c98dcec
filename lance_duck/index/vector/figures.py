"""What pylance's index_statistics says of a vector segment."""

from __future__ import annotations

from typing import Any

from lance_duck.index.vector.files import INDEX_FILE, VectorFiles


def figures(files: VectorFiles) -> dict[str, Any]:
    """Figures of a segment: index_type, metric_type, num_partitions, sub_index, partitions with their sizes, loss."""
    sub_index: dict[str, Any] = dict(files.metadata)
    for left_out in ("codebook_position", "codebook_tensor"):
        sub_index.pop(left_out, None)
    # Codes of PQ are compared by l2 for cosine, too.
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
        "index_file_version": "V3",
    }
