"""Variable-length values, uncompressed.

The buffer of a miniblock chunk has offsets of w = 4 or 8 bytes:

    offset       size          field
    0            (n + 1) * w   offsets from the start of the buffer; the first is (n + 1) * w
    (n + 1) * w                bytes of the values, then padding

A block, which is a dictionary or the content of a general block:

    offset   size             field
    0        w                bits of an offset, 32 or 64
    w        w                offset p of the value bytes
    2 * w    p - 2 * w        n + 1 offsets from p
    p                         bytes of the values

Old writers stored the bits in 1 byte, followed by n and p in w bytes each. The n + 1 offsets then begin at 1 + 2 * w. A
block has this form if one of its bytes 1 to 3 is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, VariableWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import justified, no_form, variable_values
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.variable import ascending_within, join_variable
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.kernels.texts import variable_encode
else:
    variable_encode = lazy.modules(globals(), "lance_duck.kernels.texts", "variable_encode")


@dataclass(frozen=True, slots=True)
class Variable:
    """Offsets and bytes.

    Attributes:
        offset_bits: Bits of an offset in chunks, 32 or 64. A block stores its own width.
    """

    offset_bits: int

    @classmethod
    def from_proto(cls, message: pb.Variable) -> Variable:
        """Return the codec. Raises UnsupportedError unless offsets are flat 32 or 64 bits and values uncompressed."""
        if message.HasField("values") and message.values.scheme:
            raise no_form("variable", "compressed")
        if message.offsets.WhichOneof("compression") != "flat" or message.offsets.flat.data.scheme:
            raise UnsupportedError("variable encoding supports only flat offsets", where="page encoding")
        bits = message.offsets.flat.bits_per_value
        if bits not in (32, 64):
            raise UnsupportedError(
                "the offset width is not supported", where="page encoding", expected="32 or 64", found=bits
            )
        return cls(bits)

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> VariableWidth:
        """Join all chunks. Offsets are int32 if the result is smaller than 2 GiB."""
        width = self.offset_bits // 8
        starts, sizes, counts = chunks.starts[0], chunks.sizes[0], chunks.counts
        total = justified(counts, np.maximum(sizes // width - 1, 0), "variable")
        room = int((sizes - (counts + 1) * width)[counts > 0].sum())
        offsets: NDArray[Any] = unset(total + 1, np.int32 if room <= MAX_INT32 else np.int64)
        data = unset(room, np.uint8)
        check_status(join_variable(readonly(chunks.data), starts, sizes, counts, width, offsets, data), "variable")
        return VariableWidth(offsets, data[: int(offsets[-1])])

    def decode_block(self, buffer: Bytes, count: int) -> VariableWidth:
        """Return the values of one buffer, as views."""
        width, place, start = _block_head(buffer)
        if not start <= place <= len(buffer) or (place - start) // width <= count or count < 0:
            raise CorruptError(
                "the offsets are outside the block",
                where="variable encoding",
                expected=f"{count + 1} offsets before byte {place}",
                found=f"a block of {len(buffer)} bytes",
            )
        stored = np.frombuffer(buffer[start : start + (count + 1) * width], f"<i{width}")
        data = buffer[place:]
        offsets: NDArray[Any] = np.require(stored, requirements="A")
        if not ascending_within(readonly(offsets), len(data)):
            raise CorruptError("offsets do not ascend, or exceed their block", where="variable encoding")
        return VariableWidth(offsets, data)

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: levels have a fixed width."""
        raise no_form("variable", "level")

    def decode_values(self, values: Block) -> VariableWidth:
        """Return the values themselves, with their offsets checked."""
        block = variable_values(values, "variable")
        if not ascending_within(readonly(block.offsets), len(block.data)):
            raise CorruptError("offsets do not ascend, or exceed their data", where="variable encoding")
        return block

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.offset_bits))
        return pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the offsets and bytes of each chunk, padded to a multiple of an offset's bytes."""
        values = variable_values(block, "variable")
        width = self.offset_bits // 8
        size = int(values.offsets[-1]) - int(values.offsets[0])
        ends = np.empty(len(counts), np.int64)
        out = np.empty(size + (values.count + 2 * len(counts)) * width, np.uint8)
        variable_encode.split_variable(readonly(values.data), readonly(values.offsets), counts, width, out, ends)
        return ((out[: int(ends[-1])], ends),)

    def encode_block(self, block: Block) -> Bytes:
        """Encode the head, the offsets and the bytes."""
        values = variable_values(block, "variable")
        width = self.offset_bits // 8
        word = np.dtype(f"<i{width}")
        head = np.array([self.offset_bits, (values.count + 3) * width], word)
        first, last = int(values.offsets[0]), int(values.offsets[-1])
        offsets = (values.offsets - values.offsets.dtype.type(first)).astype(word, copy=False)
        return np.concatenate([head.view(np.uint8), offsets.view(np.uint8), values.data[first:last]])

    def encode_values(self, block: Block) -> VariableWidth:
        """Return the values themselves."""
        return variable_values(block, "variable")


def _block_head(buffer: Bytes) -> tuple[int, int, int]:
    """Return the offset width, in bytes, and the positions of the values and the offsets in the buffer."""
    old = bool(buffer[1:4].any())
    bits = int.from_bytes(buffer[: 1 if old else 4].tobytes(), "little")
    if bits not in (32, 64):
        raise CorruptError(
            "the offset width of the block is invalid", where="variable encoding", expected="32 or 64", found=bits
        )
    width = bits // 8
    start = 1 + 2 * width if old else 2 * width
    place = int.from_bytes(buffer[start - width : start].tobytes(), "little")
    return width, place, start
