"""IVF_PQ segments in one file, from writers before 0.22.

index.idx
    at IVF.offsets[p]   the codes of partition p, row by row: IVF.lengths[p] codes; then the addresses of these rows,
                        u64
    at the position     u32 size, then a OneFileSegment message: IVF, then the codebook [sub-vectors][2 ** bits][dim /
    in the footer       sub-vectors], regardless of the shape of its tensor
    at the end          footer: u64 position of the message | u16 0 | u16 version, 0 or 1 | "LANC"

Version 2 stores graphs in files of format 0.1, which are not supported.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, NotFoundError, UnsupportedError
from lance_duck.forks import Lock
from lance_duck.index.files import SegmentReader
from lance_duck.index.vector.layout import (
    INDEX_FILE,
    MOST_DIMENSIONS,
    MOST_PARTITIONS,
    STORAGE_FILE,
    Partitions,
    array_of,
)
from lance_duck.index.vector.open import VectorFiles
from lance_duck.wire.pb import index_pb2

_FOOTER: Final = struct.Struct("<QHH4s")
_MAGIC: Final = b"LANC"
_ROW_BYTES: Final = 8
_METRICS: Final = ("l2", "cosine", "dot")


def vector_files(files: SegmentReader) -> VectorFiles:
    """Open the files of a vector segment, in the current or the one-file layout.

    Raises:
        CorruptError: The files contradict themselves or each other.
        NotFoundError: A file is missing.
        UnsupportedError: The index type or the layout of the segment is not supported.
    """
    try:
        return VectorFiles(files)
    except NotFoundError as error:
        if not error.where or not str(error.where).endswith(STORAGE_FILE):
            raise
    return OneFile(files)


class OneFile(VectorFiles):
    """An open segment in one file: see `VectorFiles`.

    Args:
        files: Files of the segment.

    Raises:
        CorruptError, NotFoundError, UnsupportedError: See `vector_files`.
    """

    file_version = "Legacy"

    def __init__(self, files: SegmentReader) -> None:
        self.directory = files.directory
        self._source = files.source(INDEX_FILE)
        self._where = where = self._source.path
        self.kind, self.storage = "IVF_PQ", "PQ"
        self.graph_partitions, self.loss, self.rounding, self.recall = None, None, None, None
        self.bounds, self.is_transposed, self.item = (0.0, 0.0), False, np.dtype(np.float32)
        message, self._end = self._message()
        if not 0 <= message.metric_type < len(_METRICS):
            raise UnsupportedError(
                "the metric is not supported", where=where, expected=", ".join(_METRICS), found=message.metric_type
            )
        self.metric = _METRICS[message.metric_type]
        self.dim = message.dimension
        steps = [step.WhichOneof("step") for step in message.steps]
        if steps != ["ivf", "pq"]:
            raise UnsupportedError("unknown steps of the vector segment", where=where, expected="ivf, pq", found=steps)
        if not 0 < self.dim <= MOST_DIMENSIONS:
            raise CorruptError(
                "the dimension is out of range", where=where, expected=f"1 … {MOST_DIMENSIONS}", found=self.dim
            )
        self._read_codes(message.steps[1].pq)
        self._read_partitions(message.steps[0].ivf)
        self._rows: NDArray[np.uint64] | None = None
        self._rows_of: dict[int, NDArray[np.uint64]] = {}
        self._lock = Lock()

    @property
    def num_rows(self) -> int:
        """Number of vectors."""
        return int(self.partitions.lengths.sum())

    def rows(self) -> NDArray[np.uint64]:
        """Return the row addresses in the order of positions, uint64. Read once and cached; do not modify."""
        with self._lock:
            if self._rows is None:
                lengths = self.partitions.lengths
                starts = self._starts + lengths * self.code_width
                ranges = list(zip(starts.tolist(), (lengths * _ROW_BYTES).tolist(), strict=True))
                pieces = self._source.read([each for each in ranges if each[1]])
                self._rows = np.concatenate([np.empty(0, np.uint8), *pieces]).view("<u8").astype(np.uint64)
            return self._rows

    def rows_at(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the addresses of the rows at the given positions. All addresses are read."""
        return self.rows()[positions]

    def codes(self, partitions: Sequence[int]) -> list[NDArray[Any]]:
        """Return the codes of partitions: see `VectorFiles.codes`."""
        sizes = [int(self.partitions.lengths[p]) for p in partitions]
        ranges = [(int(self._starts[p]), size * self.code_width) for p, size in zip(partitions, sizes, strict=True)]
        pieces = iter(self._source.read([each for each in ranges if each[1]]))
        none = np.empty((0, self.code_width), np.uint8)
        return [next(pieces).reshape(size, self.code_width) if size else none for size in sizes]

    def _message(self) -> tuple[index_pb2.OneFileSegment.Vectors, int]:
        """Return the message to which the footer refers, and its offset in bytes."""
        size, where = self._source.size, self._where
        if size < _FOOTER.size + 4:
            raise CorruptError("invalid size of the vector segment", where=where, found=size)
        (tail,) = self._source.read([(size - _FOOTER.size, _FOOTER.size)])
        position, major, minor, magic = _FOOTER.unpack(tail.tobytes())
        if magic != _MAGIC:
            raise CorruptError(
                "wrong magic bytes at the end of the vector segment", where=where, expected=_MAGIC, found=magic
            )
        if (major, minor) not in ((0, 0), (0, 1)):
            problem = "graphs of before 2024" if (major, minor) == (0, 2) else f"vector segment without {STORAGE_FILE}"
            raise UnsupportedError(problem, where=where, found=f"{major}.{minor}", remedy="create the index again")
        if position > size - _FOOTER.size - 4:
            raise CorruptError("invalid message position", where=where, expected=f"≤ {size}", found=position)
        (raw,) = self._source.read([(position, size - _FOOTER.size - position)])
        length = int.from_bytes(raw[:4].tobytes(), "little")
        if length > len(raw) - 4:
            raise CorruptError("invalid message size", where=where, expected=f"≤ {len(raw) - 4}", found=length)
        try:
            message = index_pb2.OneFileSegment.FromString(raw[4 : 4 + length].tobytes())
        except DecodeError as error:
            raise CorruptError("invalid message in the vector segment", where=where, found=str(error)) from error
        return message.vectors, position

    def _read_codes(self, pq: index_pb2.OneFileSegment.Codebook) -> None:
        bits, count = pq.num_bits, pq.num_sub_vectors
        if bits not in (4, 8) or not 0 < count <= self.dim or self.dim % count or count * bits % 8:
            raise CorruptError(
                "invalid codes", where=self._where, expected="4- or 8-bit codes, and sub-vectors of equal length"
            )
        numbers = _numbers(pq.codebook, pq.codebook_tensor, pq.HasField("codebook_tensor"), self._where)
        if numbers.size != self.dim << bits or not np.isfinite(numbers).all():
            raise CorruptError(
                "invalid codebook", where=self._where, expected=f"{self.dim << bits} finite numbers", found=numbers.size
            )
        self.bits = bits
        self.codebook = numbers.reshape(count, 1 << bits, self.dim // count)
        self.metadata = {"nbits": bits, "num_sub_vectors": count, "dimension": self.dim, "transposed": False}

    def _read_partitions(self, ivf: index_pb2.IVF) -> None:
        where = self._where
        numbers = _numbers(ivf.centroids, ivf.centroids_tensor, ivf.HasField("centroids_tensor"), where)
        count = len(ivf.lengths)
        if len(ivf.offsets) != count or count > MOST_PARTITIONS or numbers.size != count * self.dim or not count:
            raise CorruptError("invalid partitions", where=where, expected=f"{count} offsets and centroids")
        if not np.isfinite(numbers).all():
            raise CorruptError("invalid centroids", where=where, expected="finite numbers")
        self.centroids = np.ascontiguousarray(numbers.reshape(count, self.dim))
        lengths = np.array(ivf.lengths, np.int64)
        starts = np.array(ivf.offsets, np.uint64)
        starts[lengths == 0] = 0
        sizes = lengths * (self.code_width + _ROW_BYTES)
        if int(starts.max()) > self._end or int((starts.astype(np.int64) + sizes).max()) > self._end:
            raise CorruptError("partitions end after the rows", where=where, expected=f"≤ {self._end}")
        if int(sizes.sum()) > self._end:
            raise CorruptError("partitions overlap", where=where, expected=f"≤ {self._end} bytes", found=sizes.sum())
        self._starts = starts.astype(np.int64)
        self.partitions = Partitions(np.cumsum(lengths) - lengths, lengths)


def _numbers(plain: Sequence[float], tensor: index_pb2.Tensor, has_tensor: bool, where: str) -> NDArray[np.float32]:
    """Return the numbers of a message as a flat array. They are in a tensor, or in a list in older messages."""
    if not has_tensor:
        return np.array(plain, np.float32)
    numbers = array_of(tensor, where)
    if numbers.dtype != np.float32:
        raise CorruptError("invalid tensor type", where=where, expected="floats", found=numbers.dtype)
    return numbers.reshape(-1)
