"""General compression of the buffers of another encoding, as LZ4 blocks or ZSTD frames.

    scheme   offset   size   field
    LZ4      0        4      raw length
             4               LZ4 block
    ZSTD     0        8      raw length
             8               ZSTD frame; a buffer may also be a bare frame

In a miniblock chunk, only the first buffer is compressed. In full zip, each value is compressed.

A raw length is rejected if the compressed bytes cannot expand to it. LZ4 expands a byte to at most 255 bytes. ZSTD may
expand far more, so at most `ZSTD_TRUST` times the compressed size is allocated at once. For longer results and bare
frames, memory grows with the actual output.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import variable_values, words_at
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.flat import join_bytes
from lance_duck.kernels.pages import lz4
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.variable import ascending_within
from lance_duck.wire.pb import encodings21_pb2 as pb

LZ4_RATIO: Final = 255
ZSTD_TRUST: Final = 256
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_RESERVED_BIT: Final = 0x08
ZSTD_WINDOW: Final = 8 << 20
"""Maximum window size of frames for reused decompressors, in bytes. A decompressor retains that much memory."""
STEP: Final = 1 << 20
"""Maximum output size of one step in decompressing a frame of unknown length, in bytes."""
SCHEMES: Final = {pb.COMPRESSION_ALGORITHM_LZ4: "lz4", pb.COMPRESSION_ALGORITHM_ZSTD: "zstd"}
ZSTD_LEVEL: Final = 3
Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class General:
    """Compressed buffers of another encoding.

    Attributes:
        scheme: "lz4" or "zstd".
        inner: Codec of the decompressed bytes.
        level: Compression level, or None for the default. LZ4 ignores it.
    """

    scheme: str
    inner: Codec
    level: int | None = None

    @classmethod
    def from_proto(cls, message: pb.General, codec: Callable[[pb.CompressiveEncoding], Codec]) -> General:
        """Return the codec. Raises UnsupportedError for an unknown scheme."""
        scheme = message.compression.scheme
        if scheme not in SCHEMES:
            raise UnsupportedError(
                "the compression scheme is not supported", where="page encoding", expected="LZ4 or ZSTD", found=scheme
            )
        level = message.compression.level if message.compression.HasField("level") else None
        return cls(SCHEMES[scheme], codec(message.values), level)

    @property
    def num_buffers(self) -> int:
        """Number of buffers of the inner encoding."""
        return self.inner.num_buffers

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decompress the first buffer of each chunk."""
        return self.inner.decode_chunks(self._decompress_first(chunks))

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Decompress the buffer."""
        return self.inner.decode_block(self.decompress(buffer), count)

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Decompress each chunk's buffer."""
        return self.inner.decode_blocks(self._decompress_first(chunks))

    def decode_values(self, values: Block) -> Block:
        """Decompress each value. An empty value stays empty."""
        block = variable_values(values, "general")
        if not ascending_within(readonly(block.offsets), len(block.data)):
            raise CorruptError("offsets do not ascend, or exceed their data", where="general encoding")
        offsets = block.offsets.astype(np.int64)
        data, sizes = self._decompress(block.data, offsets[:-1], np.diff(offsets))
        ends: NDArray[Any] = np.zeros(len(offsets), np.int32 if len(data) <= MAX_INT32 else np.int64)
        np.cumsum(sizes, out=ends[1:])
        return self.inner.decode_values(VariableWidth(ends, data))

    def decompress(self, buffer: Bytes) -> Bytes:
        """Return the decompressed buffer, in the inner encoding."""
        if self.scheme == "zstd":
            return _zstd_buffer(buffer)
        raw, _ = self._decompress(buffer, np.zeros(1, np.int64), np.array([len(buffer)], np.int64))
        return raw

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        scheme = next(number for number, name in SCHEMES.items() if name == self.scheme)
        compression = pb.BufferCompression(scheme=scheme, level=self.level)
        return pb.CompressiveEncoding(general=pb.General(compression=compression, values=self.inner.to_proto()))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Encode with the inner encoding, and compress the first buffer of each chunk."""
        return self.compress_first(self.inner.encode_chunks(block, counts))

    def compress_first(self, buffers: tuple[ChunkBuffer, ...]) -> tuple[ChunkBuffer, ...]:
        """Compress the first buffer of each chunk. The inner encoding has already encoded them."""
        (data, ends), *rest = buffers
        return (self._compress(data, np.concatenate([np.zeros(1, np.int64), ends])), *rest)

    def encode_block(self, block: Block) -> Bytes:
        """Encode with the inner encoding, and compress the buffer."""
        return self.compress(self.inner.encode_block(block))

    def compress(self, data: Bytes) -> Bytes:
        """Compress a buffer that the inner encoding has already encoded."""
        return self._compress(data, np.array([0, len(data)], np.int64))[0]

    def encode_values(self, block: Block) -> VariableWidth:
        """Compress each value. With ZSTD, an empty value stays empty."""
        values = variable_values(self.inner.encode_values(block), "general")
        data, ends = self._compress(values.data, values.offsets)
        offsets: NDArray[Any] = np.zeros(values.count + 1, np.int32 if len(data) <= MAX_INT32 else np.int64)
        offsets[1:] = ends
        return VariableWidth(offsets, data)

    def _compress(self, data: Bytes, bounds: NDArray[Any]) -> ChunkBuffer:
        """Compress the slices of `data` between adjacent bounds. Returns the joined results and their ends."""
        starts = bounds[:-1].astype(np.int64)
        sizes = np.diff(bounds).astype(np.int64)
        if self.scheme == "lz4":
            return _behind_lengths(*_lz4_blocks(data, starts, sizes), sizes.astype("<u4"))
        full = sizes > 0
        frames, frame_sizes = _zstd_frames(data, starts[full], sizes[full], self.level)
        joined, own_ends = _behind_lengths(frames, frame_sizes, sizes[full].astype("<u8"))
        ends = np.zeros(len(sizes), np.int64)
        ends[full] = np.diff(own_ends, prepend=0)
        return joined, np.cumsum(ends)

    def _decompress_first(self, chunks: Chunks) -> Chunks:
        raw, raw_sizes = self._decompress(chunks.data, chunks.starts[0], chunks.sizes[0])
        sizes = np.vstack([raw_sizes, chunks.sizes[1:]])
        rest_sizes = chunks.sizes[1:].ravel()
        data = unset(len(raw) + int(rest_sizes.sum()), np.uint8) if len(rest_sizes) else raw
        if len(rest_sizes):
            data[: len(raw)] = raw
            join_bytes(readonly(chunks.data), chunks.starts[1:].ravel(), rest_sizes, data[len(raw) :])
        flat_sizes = sizes.ravel()
        starts = (np.cumsum(flat_sizes) - flat_sizes).reshape(sizes.shape)
        return Chunks(data, starts, sizes, chunks.counts)

    def _decompress(
        self, data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> tuple[Bytes, NDArray[np.int64]]:
        """Decompress the buffers. Returns the joined raw bytes and the size of each."""
        return (_lz4 if self.scheme == "lz4" else _zstd)(data, starts, sizes)


def _lz4_blocks(data: Bytes, starts: Int64s, sizes: Int64s) -> tuple[Bytes, Int64s]:
    """Compress slices as LZ4 blocks. Returns the joined blocks and their sizes."""
    compress, raw = pa.Codec("lz4_raw").compress, np.ascontiguousarray(data).data
    extents = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    return _joined([compress(raw[start:end], asbytes=True) for start, end in extents])


def _zstd_frames(data: Bytes, starts: Int64s, sizes: Int64s, level: int | None) -> tuple[Bytes, Int64s]:
    """Compress slices as ZSTD frames. Returns the joined frames and their sizes.

    Raises:
        UnsupportedError: ZSTD does not have this compression level.
    """
    zstd_level = level or ZSTD_LEVEL
    if not 1 <= zstd_level <= 22:
        raise UnsupportedError(
            "the compression level is not supported", where="general encoding (ZSTD)", expected="1 to 22", found=level
        )
    if not len(sizes):
        return _joined([])
    parts = zstandard.BufferWithSegments(np.ascontiguousarray(data).data, np.stack([starts, sizes], 1).tobytes())
    frames = zstandard.ZstdCompressor(level=zstd_level).multi_compress_to_buffer(parts)
    return _joined([frames[i] for i in range(len(frames))])


def _joined(parts: list[Any]) -> tuple[Bytes, Int64s]:
    """Return concatenated buffers, and their sizes."""
    return np.frombuffer(b"".join(parts), np.uint8), np.fromiter(map(len, parts), np.int64, len(parts))


def _behind_lengths(data: Bytes, sizes: Int64s, lengths: NDArray[Any]) -> ChunkBuffer:
    """Prefix each compressed slice with its raw length. Returns the joined slices and their ends."""
    head = lengths.itemsize
    starts = np.stack([np.arange(len(sizes)) * head, len(sizes) * head + np.cumsum(sizes) - sizes], 1)
    source = np.concatenate([lengths.view(np.uint8), data])
    out = np.empty(len(source), np.uint8)
    join_bytes(readonly(source), starts.ravel(), np.stack([np.full(len(sizes), head), sizes], 1).ravel(), out)
    return out, np.cumsum(sizes + head)


def _lz4(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[Bytes, NDArray[np.int64]]:
    full = sizes > 0
    if (sizes[full] < 4).any():
        raise CorruptError(
            "a buffer is too short for its length prefix", where="general encoding (LZ4)", expected="4 bytes or more"
        )
    raw_sizes = np.zeros(len(sizes), np.int64)
    raw_sizes[full] = words_at(data, starts[full], np.dtype("<u4"))
    excess = raw_sizes > sizes * LZ4_RATIO
    if excess.any():
        buffer = int(excess.argmax())
        raise _excess("LZ4", int(sizes[buffer]), int(raw_sizes[buffer]))
    ends = np.cumsum(raw_sizes[full])
    total = int(ends[-1]) if len(ends) else 0
    out = unset(total + lz4.SLACK, np.uint8)
    check_status(lz4.decompress_blocks(readonly(data), starts[full] + 4, sizes[full] - 4, ends, out), "LZ4", "buffer")
    return out[:total], raw_sizes


def _zstd(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[Bytes, NDArray[np.int64]]:
    extents = zip(starts.tolist(), sizes.tolist(), strict=True)
    parts = [_zstd_buffer(data[start : start + size]) for start, size in extents]
    raw_sizes = np.array([len(part) for part in parts], np.int64)
    if len(parts) == 1:
        return parts[0], raw_sizes
    return joined(parts, np.uint8), raw_sizes


def _zstd_buffer(buffer: Bytes) -> Bytes:
    if len(buffer) == 0:
        return buffer
    head = buffer[:8].tobytes()
    if len(head) < 8 or (head[:4] == ZSTD_MAGIC and not head[4] & ZSTD_RESERVED_BIT):
        return _zstd_stream(buffer, None)
    raw_size = int.from_bytes(head, "little")
    if raw_size > len(buffer) * ZSTD_TRUST + STEP:
        return _zstd_stream(buffer[8:], raw_size)
    content = _frame_content(buffer[8:], raw_size)
    if content is not None:
        return np.frombuffer(content, np.uint8)
    try:
        raw = pa.Codec("zstd").decompress(buffer[8:], decompressed_size=raw_size)
    except OSError as error:
        raise CorruptError(f"the frame cannot be decompressed ({error})", where="general encoding (ZSTD)") from error
    return np.frombuffer(raw, np.uint8)


class _Decompressors(threading.local):
    """A decompressor for each thread: creating one takes four times as long as decompressing a frame of 3 KB."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)


_DECOMPRESSORS: Final = _Decompressors()


def _frame_content(frame: Bytes, raw_size: int) -> bytes | None:
    """Return the content of a buffer, or None unless it is a single valid frame of this length with a small window."""
    try:
        data: Any = frame
        if zstandard.frame_content_size(data) not in (raw_size, -1):
            return None
        content: bytes = _DECOMPRESSORS.zstd.decompress(data, max_output_size=raw_size, allow_extra_data=False)
    except zstandard.ZstdError:
        return None
    return content if len(content) == raw_size else None


def _zstd_stream(frame: Bytes, raw_size: int | None) -> Bytes:
    """Return the content of a frame. Unless `raw_size` is None, the content must have this size."""
    parts, size = [], 0
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(frame), "zstd")
        while part := stream.read(STEP):
            parts.append(part)
            size += len(part)
            if raw_size is not None and size > raw_size:
                break
    except OSError as error:
        raise CorruptError(f"the frame cannot be decompressed ({error})", where="general encoding (ZSTD)") from error
    if raw_size is not None and size != raw_size:
        raise _excess("ZSTD", len(frame), raw_size)
    return np.frombuffer(b"".join(parts), np.uint8)


def _excess(scheme: str, size: int, raw_size: int) -> CorruptError:
    return CorruptError(
        "the raw length exceeds what the compressed bytes can hold",
        where=f"general encoding ({scheme})",
        expected=f"a length that {size} compressed bytes can hold",
        found=raw_size,
    )
