"""Reads the details of a vector segment in the manifest, which are a VectorIndexDetails message.

Older writers left the message empty. In that case, only the files store the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_duck.index.vector.layout import MOST_PARTITIONS
from lance_duck.wire.pb import index_pb2

_METRICS: Final = ("l2", "cosine", "dot", "hamming")
_ROTATIONS: Final = ("fast", "matrix")
_HINTS: Final = ("sample_rate", "max_iters")
_HINT: Final = "lance.ivf."
_TRAINED: Final = "lance_duck.trained_rows"


def vector_parameters(details: bytes) -> dict[str, Any]:
    """Return the parameters for rebuilding an index, by pylance's names. Returns {} if they are unknown.

    The number of partitions is included only if a user set it. Otherwise the row count determines it.
    """
    message = _message(details)
    storage = None if message is None else message.WhichOneof("compression")
    if message is None or storage not in ("flat", "sq", "pq", "rq"):
        return {}
    graph = "HNSW_" if message.HasField("hnsw_index_config") else ""
    parameters: dict[str, Any] = {
        "index_type": f"IVF_{graph}{storage.upper()}",
        "metric": _METRICS[message.metric_type],
        "target_partition_size": message.target_partition_size,
    }
    if message.target_num_partitions <= MOST_PARTITIONS:
        parameters["num_partitions"] = message.target_num_partitions
    if storage == "pq":
        parameters |= {"num_bits": message.pq.num_bits, "num_sub_vectors": message.pq.num_sub_vectors}
    elif storage == "rq":
        parameters["num_bits"] = message.rq.num_bits
    if graph:
        config = message.hnsw_index_config
        parameters |= {
            "m": config.max_connections,
            "ef_construction": config.construction_ef,
            "max_level": config.max_level,
        }
    parameters |= {name: _hint(message, _HINT + name, 6) for name in _HINTS}
    return {name: value for name, value in parameters.items() if value}


def trained_rows(details: bytes) -> int:
    """Return the number of vectors that an index had when it was trained, or 0 if the number is unknown."""
    message = _message(details)
    return 0 if message is None else _hint(message, _TRAINED, 18)


def with_trained_rows(details: bytes, count: int) -> bytes:
    """Add the number of vectors at the time of training to a message. 0 leaves the message unchanged."""
    message = index_pb2.VectorIndexDetails.FromString(details)
    if count:
        message.runtime_hints[_TRAINED] = str(count)
    return message.SerializeToString(deterministic=True)


def parameters_in(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Like `vector_parameters`, for segments with an empty message. Uses the statistics of the segment."""
    inside = figures.get("sub_index", {})
    graph = inside.get("params", {})
    parameters = {
        "index_type": figures["index_type"],
        "metric": figures["metric_type"],
        "num_bits": inside.get("nbits"),
        "num_sub_vectors": inside.get("num_sub_vectors"),
        **{name: graph.get(name) for name in ("m", "ef_construction", "max_level")},
    }
    return {name: value for name, value in parameters.items() if value}


def shown_details(details: bytes) -> dict[str, Any]:
    """Return a details message in the form of pylance's describe_indices, or {} for an empty message."""
    message = _message(details)
    if message is None or not details:
        return {}
    result: dict[str, Any] = {"metric_type": _METRICS[message.metric_type].upper()}
    if message.target_partition_size:
        result["target_partition_size"] = message.target_partition_size
    if message.HasField("hnsw_index_config"):
        config = message.hnsw_index_config
        result["hnsw"] = {
            "max_connections": config.max_connections,
            "construction_ef": config.construction_ef,
            "max_level": config.max_level,
        }
    compression = _compression(message)
    if compression:
        result["compression"] = compression
    if message.runtime_hints:
        result["runtime_hints"] = dict(message.runtime_hints)
    return result


def _compression(message: index_pb2.VectorIndexDetails) -> dict[str, Any]:
    kind = message.WhichOneof("compression")
    if kind == "pq":
        return {"type": kind, "num_bits": message.pq.num_bits, "num_sub_vectors": message.pq.num_sub_vectors}
    if kind == "sq":
        return {"type": kind, "num_bits": message.sq.num_bits}
    if kind == "rq":
        number = message.rq.rotation_type
        rotation = _ROTATIONS[number] if number < len(_ROTATIONS) else str(number)
        return {"type": kind, "num_bits": message.rq.num_bits, "rotation_type": rotation}
    return {}


def _hint(message: index_pb2.VectorIndexDetails, name: str, digits: int) -> int:
    """Return a number from the runtime hints, or 0 if it is missing."""
    text = message.runtime_hints.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else 0


def _message(details: bytes) -> index_pb2.VectorIndexDetails | None:
    """Return the parsed message. Returns None if it is invalid or has an unknown metric."""
    try:
        message = index_pb2.VectorIndexDetails.FromString(details)
    except DecodeError:
        return None
    return message if message.metric_type < len(_METRICS) else None
