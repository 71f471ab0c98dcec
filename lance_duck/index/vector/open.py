"""The open files of a vector segment. Centroids and codebooks are in memory, codes and rows are read on demand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.forks import Lock
from lance_duck.index.files import SegmentFile, SegmentReader
from lance_duck.index.vector.codecs.rq import Rounding, rounding_of
from lance_duck.index.vector.layout import (
    COLUMNS,
    INDEX_FILE,
    KINDS,
    MOST_DIMENSIONS,
    RECALL_FILE,
    ROW_ID,
    STORAGE_FILE,
    array_of,
    ivf_of,
    json_integer,
    json_of,
    number_of,
    parsed,
    partition_ranges,
    real,
    tensor_of,
)
from lance_duck.index.vector.metric import METRICS
from lance_duck.index.vector.vectors import is_vector, matrix_of
from lance_duck.store import gather, run


class VectorFiles:
    """An open vector segment. The metadata is read and checked when the segment is opened. Rows are read on demand.

    Safe to use from several threads.

    Attributes:
        file_version: pylance's name of the layout.
        kind: "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or "IVF_HNSW_PQ".
        storage: "FLAT", "SQ", "PQ" or "RQ".
        metric: "l2", "cosine", "dot" or "hamming".
        dim: Number of dimensions.
        centroids: float32 (partitions, dim), finite; uint8 for hamming. For cosine, not normalised.
        item: dtype in which the numbers of centroids are stored.
        loss: Training loss. None if unknown.
        partitions: Row range of each partition in the storage file.
        graph_partitions: Row range of each partition in the graph file. None if the index type does not have graphs.
        metadata: Metadata of the codes, as stored.
        bounds: Numbers that the SQ codes 0 and 255 represent. (0, 0) for other storages.
        bits: Code width of a PQ sub-vector in bits, 4 or 8. 0 for other storages.
        codebook: float32 (sub-vectors, 2 ** bits, dim / sub-vectors), finite. Empty unless the storage is PQ.
        rounding: Rotation and rounding of vectors by RQ. None for other storages.
        is_transposed: Whether partitions store the first bytes of all PQ codes, then the second bytes, and so on.
            `codes` always returns them row by row.
        recall: Contents of the recall file, not validated. None if it does not exist.
        index: File of the graphs.
        auxiliary: File of the storage.

    Args:
        files: Files of the segment.

    Raises:
        CorruptError: The files contradict themselves or each other.
        NotFoundError: A file is missing.
        UnsupportedError: The index type or the layout of the segment is not supported.
    """

    file_version = "V3"

    def __init__(self, files: SegmentReader) -> None:
        files.open_ahead([STORAGE_FILE, INDEX_FILE], [RECALL_FILE])
        self.recall = files.bytes_of(RECALL_FILE)
        self.auxiliary = files.open(STORAGE_FILE)
        self.index = files.open(INDEX_FILE)
        self.directory = files.directory
        where = self.index.path
        about = json_of(self.index.metadata, "lance:index", dict, where)
        self.kind = _known_kind(about.get("type"), where)
        self.storage = self.kind.rpartition("_")[2]
        self.metric = _known_metric(about.get("distance_type"), where)
        stored = _known_metric(self.auxiliary.metadata.get("distance_type"), self.auxiliary.path)
        if stored != self.metric:
            raise CorruptError(
                "the metrics of the two files differ", where=self.auxiliary.path, expected=self.metric, found=stored
            )
        self._read_index()
        self._read_storage()
        self._rows: NDArray[np.uint64] | None = None
        self._rows_of: dict[int, NDArray[np.uint64]] = {}
        self._lock = Lock()

    @property
    def num_rows(self) -> int:
        """Number of vectors."""
        return self.auxiliary.num_rows

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.partitions)

    @property
    def has_graphs(self) -> bool:
        """Whether partitions have graphs."""
        return "HNSW" in self.kind

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        rows = sum(part.nbytes for part in list(self._rows_of.values())) if self._rows is None else self._rows.nbytes
        rotation = 0 if self.rounding is None else self.rounding.rotation.nbytes
        model = int(self.centroids.nbytes + self.codebook.nbytes) + rotation
        return model + 32 * self.num_partitions + rows + 4096

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""
        with self._lock:
            if self._rows is None:
                (row_ids,) = self.auxiliary.read([ROW_ID])
                self._rows = self._names(row_ids)
                self._rows_of = {}
            return self._rows

    def rows_at(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the row ids or addresses at the given positions, uint64, in the order of `positions`.

        From a local disk, only these rows are read. From an object store, their partitions are read and cached.

        Args:
            positions: int64 (n,), at least one position. Each is below `num_rows`.
        """
        if self._rows is not None:
            return self._rows[positions]
        if self.auxiliary.is_remote:
            return self._rows_of_partitions(positions)
        places, inverse = np.unique(positions, return_inverse=True)
        (row_ids,) = self.auxiliary.read_few([ROW_ID], places)
        return self._names(row_ids)[inverse]

    def _rows_of_partitions(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Like `rows_at`, but reads whole partitions and caches them. Uncached partitions are read together."""
        owners, rows_of = self.partitions.owners(positions), self._rows_of
        partitions = distinct(owners).tolist()
        missing = [partition for partition in partitions if partition not in rows_of]
        if missing:
            rows_of |= self._read_rows_of(missing)
        names = np.empty(len(positions), np.uint64)
        by_owner = np.argsort(owners, kind="stable")
        edges = [*np.searchsorted(owners, partitions, sorter=by_owner).tolist(), len(owners)]
        for partition, (first, end) in zip(partitions, pairwise(edges), strict=True):
            places = by_owner[first:end]
            names[places] = rows_of[partition][positions[places] - self.partitions.offsets[partition]]
        return names

    def _read_rows_of(self, partitions: Sequence[int]) -> dict[int, NDArray[np.uint64]]:
        column = self.auxiliary.column(ROW_ID)
        arrays = run(gather([column.read(self.partitions.rows(partition)) for partition in partitions]))
        return dict(zip(partitions, map(self._names, arrays), strict=True))

    def _names(self, row_ids: pa.Array) -> NDArray[np.uint64]:
        if row_ids.null_count:
            raise CorruptError(f"column {ROW_ID!r} contains nulls", where=self.auxiliary.path, found=row_ids.null_count)
        names: NDArray[np.uint64] = row_ids.to_numpy()
        return names

    def codes(self, partitions: Sequence[int]) -> list[NDArray[Any]]:
        """Read the codes of partitions together. Do not modify the results.

        Codes of FLAT are float32 vectors (uint8 for hamming), normalised for cosine. Codes of RQ are rows with their
        factors. From an object store, row ids are read together with codes, which saves `rows_at` a round trip.

        Returns:
            The codes of each partition, (length, `code_width`), C-contiguous.
        """
        rounding = self.rounding
        names = [COLUMNS[self.storage]] if rounding is None else [*rounding.codes, *rounding.factors]
        with_rows = self.auxiliary.is_remote and self._rows is None
        columns = [self.auxiliary.column(name) for name in ([*names, ROW_ID] if with_rows else names)]
        spans = self.partitions.spans(partitions)
        arrays = iter(run(gather([column.read(span.rows) for span in spans for column in columns])))
        codes: list[NDArray[Any]] = []
        for span in spans:
            mine = [next(arrays) for _ in names]
            row_ids = self._names(next(arrays)) if with_rows else None
            for first, count in span.parts:
                if row_ids is not None:
                    self._rows_of[partitions[len(codes)]] = row_ids[first : first + count]
                parts = [array.slice(first, count) for array in mine]
                codes.append(self._matrix(parts[0]) if rounding is None else self._rounded(rounding, names, parts))
        return codes

    @property
    def code_width(self) -> int:
        """Length of a code: the dimension for FLAT and SQ, the size in bytes for PQ and RQ."""
        if self.rounding is not None:
            return self.rounding.width
        return self.dim if self.storage != "PQ" else len(self.codebook) * self.bits // 8

    def _rounded(self, rounding: Rounding, names: Sequence[str], parts: Sequence[pa.Array]) -> NDArray[np.uint8]:
        """Convert the file columns of an RQ partition to rows in memory. `names` are the names of the columns."""
        arrays = dict(zip(names, parts, strict=True))
        if any(array.null_count for array in parts):
            raise CorruptError("the codes contain nulls", where=self.auxiliary.path)
        columns: dict[str, NDArray[Any]] = {name: arrays[name].to_numpy() for name in rounding.factors}
        for name, width in rounding.codes.items():
            columns[name], present = matrix_of(arrays[name], width)
            if present is not None:
                raise CorruptError("the codes contain nulls", where=self.auxiliary.path)
        return rounding.rows(columns, len(parts[0]))

    def _matrix(self, array: pa.Array) -> NDArray[Any]:
        values, present = matrix_of(array, self.code_width)
        if present is not None:
            raise CorruptError(f"column {COLUMNS[self.storage]!r} contains nulls", where=self.auxiliary.path)
        if self.storage == "PQ" and self.is_transposed and len(array):
            return np.ascontiguousarray(values.reshape(self.code_width, len(array)).T)
        return values

    def _read_index(self) -> None:
        where = self.index.path
        ivf = ivf_of(self.index.global_buffer(_position(self.index, "lance:ivf")), where)
        if not ivf.HasField("centroids_tensor"):
            raise UnsupportedError("the segment does not have a tensor of centroids", where=where)
        self.centroids = array_of(ivf.centroids_tensor, where)
        self.dim = self.centroids.shape[1]
        self.item = number_of(ivf.centroids_tensor)
        self.loss = ivf.loss if ivf.HasField("loss") else None
        if not 0 < self.dim <= MOST_DIMENSIONS:
            raise CorruptError("invalid dimension of the centroids", where=where, found=self.dim)
        if (self.centroids.dtype == np.uint8) != (self.metric == "hamming"):
            raise CorruptError(
                f"the centroids have the wrong type for metric {self.metric}", where=where, found=self.centroids.dtype
            )
        if self.metric != "hamming" and not np.isfinite(self.centroids).all():
            raise CorruptError("the centroids contain numbers that are not finite", where=where)
        self.graph_partitions = (
            partition_ranges(ivf, self.index.num_rows, where, all_rows=True) if self.has_graphs else None
        )

    def _read_storage(self) -> None:
        where = self.auxiliary.path
        ivf = ivf_of(self.auxiliary.global_buffer(_position(self.auxiliary, "lance:ivf")), where)
        self.partitions = partition_ranges(ivf, self.num_rows, where, all_rows=True)
        for partitions in (self.partitions, self.graph_partitions):
            if partitions is not None and len(partitions) != len(self.centroids):
                raise CorruptError(
                    "the partition count differs from the centroid count",
                    where=where,
                    expected=len(self.centroids),
                    found=len(partitions),
                )
        texts = json_of(self.auxiliary.metadata, "storage_metadata", list, where)
        if len(texts) != 1:
            raise CorruptError(
                "storage_metadata has the wrong length", where=where, expected="one string", found=len(texts)
            )
        self.metadata: dict[str, Any] = parsed(texts[0], dict, where)
        key = {"PQ": "dimension", "RQ": "code_dim"}.get(self.storage, "dim")
        is_said = self.storage != "RQ" or self.metadata.get(key) is not None  # pylance before 4 did not write it
        dimension = json_integer(self.metadata, key, 1, MOST_DIMENSIONS, where) if is_said else self.dim
        if dimension != self.dim:
            raise CorruptError(
                "the dimension differs from the centroids", where=where, expected=self.dim, found=dimension
            )
        self.bits, self.bounds, self.is_transposed = 0, (0.0, 0.0), False
        self.rounding: Rounding | None = None
        self.codebook: NDArray[np.float32] = np.empty((0, 0, 0), np.float32)
        if self.storage == "PQ":
            self._read_codebook(where)
        elif self.storage == "RQ":
            self.rounding = rounding_of(self.auxiliary, self.metadata, self.dim)
        elif self.storage == "SQ":
            json_integer(self.metadata, "num_bits", 8, 8, where)
            bounds = self.metadata.get("bounds")
            if not isinstance(bounds, dict):
                raise CorruptError("the bounds are not a JSON object", where=where, found=repr(bounds))
            self.bounds = (real(bounds, "start", where), real(bounds, "end", where))
        self.auxiliary.column(ROW_ID, pa.uint64())
        self._check_column(where)

    def _read_codebook(self, where: str) -> None:
        self.bits = json_integer(self.metadata, "nbits", 4, 8, where)
        count = json_integer(self.metadata, "num_sub_vectors", 1, self.dim, where)
        if self.bits not in (4, 8) or self.dim % count or count * self.bits % 8:
            raise CorruptError(
                "invalid codes",
                where=where,
                expected="4- or 8-bit codes, and sub-vectors of equal length",
                found=self.metadata,
            )
        transposed = self.metadata.get("transposed", False)
        if not isinstance(transposed, bool):
            raise CorruptError("transposed is not a boolean", where=where, found=repr(transposed))
        self.is_transposed = transposed
        tensor = array_of(tensor_of(self._codebook_bytes(where), where), where)
        if tensor.dtype != np.float32 or tensor.size != self.dim << self.bits:
            raise CorruptError(
                "the codebook has the wrong type or shape",
                where=where,
                expected=(1 << self.bits, self.dim),
                found=tensor.shape,
            )
        if not np.isfinite(tensor).all():
            raise CorruptError("the codebook contains numbers that are not finite", where=where)
        self.codebook = tensor.reshape(count, 1 << self.bits, self.dim // count)

    def _codebook_bytes(self, where: str) -> bytes:
        """Return the codebook message from a global buffer. Writers before 0.30 stored it in the metadata."""
        position = json_integer(self.metadata, "codebook_position", 0, 1 << 31, where)
        if position:
            return self.auxiliary.global_buffer(position)
        numbers = self.metadata.get("codebook_tensor")
        try:
            return bytes(numbers if isinstance(numbers, list) else None)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise CorruptError(
                "the codebook_tensor does not contain bytes",
                where=where,
                expected="numbers from 0 to 255",
                found=str(error),
            ) from error

    def _check_column(self, where: str) -> None:
        if self.rounding is not None:
            for name in self.rounding.factors:
                self.auxiliary.column(name, pa.float32())
            for name, width in self.rounding.codes.items():
                arrow_type = self.auxiliary.column(name).arrow_type
                if not is_vector(arrow_type) or arrow_type.list_size != width or arrow_type.value_type != pa.uint8():
                    raise CorruptError(
                        f"column {name!r} has the wrong type", where=where, expected=f"{width} bytes", found=arrow_type
                    )
            return
        name = COLUMNS[self.storage]
        type_ = self.auxiliary.column(name).arrow_type
        in_bytes = self.storage != "FLAT" or self.metric == "hamming"
        if not is_vector(type_) or type_.list_size != self.code_width or (type_.value_type == pa.uint8()) != in_bytes:
            raise CorruptError(
                f"column {name!r} has the wrong type",
                where=where,
                expected=f"{self.code_width} numbers of a code",
                found=type_,
            )


def _position(file: SegmentFile, key: str) -> int:
    """Return the index of a global buffer, which a metadata entry stores."""
    text = file.metadata.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise CorruptError(f"metadata {key!r} is not the number of a global buffer", where=file.path, found=repr(text))
    return int(text)


def _known_kind(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise CorruptError("invalid index type", where=where, found=repr(name))
    if name not in KINDS:
        raise UnsupportedError(
            "the vector index kind is not supported", where=where, expected=", ".join(KINDS), found=repr(name)
        )
    return name


def _known_metric(name: Any, where: str) -> str:
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise CorruptError("the metric is unknown", where=where, expected=", ".join(METRICS), found=repr(name))
    return metric
