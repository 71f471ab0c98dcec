"""FSST: stores strings as codes for symbols of up to 8 bytes. Each page has one symbol table.

The inner values have variable width, and each of their bytes is a code. A code c < n stands for symbol c. Code 255 is
an escape: the next byte is a literal. The symbol table takes 2312 bytes in the page's description:

    offset      size    field
    0           1       n, number of symbols
    1           2       used by the encoder only
    3           1       bit 0: 1 when the values are codes, 0 when they are plain
    4           4       b"TSSF"
    8           n * 8   symbols, with arbitrary padding
    8 + n * 8   n       bytes of each symbol, 1 to 8
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import narrow_offsets, no_form, variable_values
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.fsst import NO_SYMBOL, PLACES, SLACK, expand
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.encoding.codecs import fsst_train
    from lance_duck.kernels.texts import fsst_encode
else:
    fsst_train = lazy.modules(globals(), "lance_duck.encoding.codecs", "fsst_train")
    fsst_encode = lazy.modules(globals(), "lance_duck.kernels.texts", "fsst_encode")

MAGIC: Final = b"TSSF"
MAX_SYMBOL: Final = 8
TABLE_BYTES: Final = 8 + 256 * 9


@dataclass(frozen=True, slots=True, eq=False)
class Fsst:
    """Codes for symbols.

    Attributes:
        inner: Codec that stores the codes. It decodes to VariableWidth.
        coded: Whether values are codes. Otherwise, they are plain.
        symbols: uint64 (256,), symbol of each code.
        lengths: uint8 (256,), bytes of each symbol, 1 to 8; NO_SYMBOL for unused codes.
        table: Table that finds symbols, or None if the codec only decodes.
    """

    inner: Codec
    coded: bool
    symbols: NDArray[np.uint64]
    lengths: Bytes
    table: fsst_train.SymbolTable | None = None

    @classmethod
    def of_symbols(cls, table: fsst_train.SymbolTable, inner: Codec) -> Fsst:
        """Return the codec that encodes with these symbols."""
        symbols, lengths = np.zeros(256, np.uint64), np.full(256, NO_SYMBOL, np.uint8)
        symbols[: len(table.symbols)], lengths[: len(table.lengths)] = table.symbols, table.lengths
        return cls(inner, True, readonly(symbols), readonly(lengths), table)

    @classmethod
    def from_proto(cls, message: pb.Fsst, codec: Callable[[pb.CompressiveEncoding], Codec]) -> Fsst:
        """Return the codec. Raises CorruptError for a broken symbol table."""
        table = np.frombuffer(message.symbol_table, np.uint8)
        count = int(table[0]) if len(table) else 0
        if len(table) < 8 + 9 * count or table[4:8].tobytes() != MAGIC:
            raise CorruptError(
                "the symbol table is invalid",
                where="fsst encoding",
                expected=f"b'TSSF' and {count} symbols",
                found=f"{len(table)} bytes",
            )
        symbols, lengths = np.zeros(256, np.uint64), np.full(256, NO_SYMBOL, np.uint8)
        symbols[:count] = table[8 : 8 + 8 * count].view("<u8")
        lengths[:count] = table[8 + 8 * count : 8 + 9 * count]
        if count and not 1 <= lengths[:count].min() <= lengths[:count].max() <= MAX_SYMBOL:
            raise CorruptError(
                "the length of a symbol is out of range",
                where="fsst encoding",
                expected="1 to 8",
                found=lengths[:count].tolist(),
            )
        return cls(codec(message.values), bool(table[3] & 1), readonly(symbols), readonly(lengths))

    @property
    def num_buffers(self) -> int:
        """Number of buffers of the inner codec."""
        return self.inner.num_buffers

    def decode_chunks(self, chunks: Chunks) -> VariableWidth:
        """Expand and join all chunks. Offsets are int32 if the result is smaller than 2 GiB."""
        return self._expand(self.inner.decode_chunks(chunks))

    def decode_block(self, buffer: Bytes, count: int) -> VariableWidth:
        """Expand the values of one buffer."""
        return self._expand(self.inner.decode_block(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: levels have a fixed width."""
        raise no_form("fsst", "level")

    def decode_values(self, values: Block) -> VariableWidth:
        """Expand values that were encoded one by one."""
        return self._expand(self.inner.decode_values(values))

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding, with the symbol table."""
        count = int(np.count_nonzero(self.lengths != NO_SYMBOL))
        head = bytes([count, 0, 0, self.coded]) + MAGIC
        table = head + self.symbols[:count].tobytes() + self.lengths[:count].tobytes()
        message = pb.Fsst(symbol_table=table.ljust(TABLE_BYTES, b"\0"), values=self.inner.to_proto())
        return pb.CompressiveEncoding(fsst=message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the codes of all chunks."""
        return self.inner.encode_chunks(self.replace(block), counts)

    def encode_block(self, block: Block) -> Bytes:
        """Return the codes in one buffer."""
        return self.inner.encode_block(self.replace(block))

    def encode_values(self, block: Block) -> Block:
        """Return the codes of each value."""
        return self.inner.encode_values(self.replace(block))

    def replace(self, block: Block) -> VariableWidth:
        """Encode values as codes. Raises UnsupportedError for a codec that only decodes."""
        values = variable_values(block, "fsst")
        if self.table is None:
            raise no_form("fsst without a trained table", "written")
        first, last = int(values.offsets[0]), int(values.offsets[-1])
        middle = min(int(values.offsets.searchsorted((first + last) // 2)), values.count)
        room = 2 * (last - first) + fsst_encode.SLACK
        ends: NDArray[Any] = np.empty(values.count + 1, np.int32 if room <= MAX_INT32 else np.int64)
        out, spare = (
            np.empty(size, np.uint8) for size in (room, 2 * (last - int(values.offsets[middle])) + fsst_encode.SLACK)
        )
        inputs = readonly(values.data), readonly(values.offsets)
        num_bytes = fsst_encode.compress(*inputs, self.table.places, middle, ends, out, spare)
        return VariableWidth(ends, out[:num_bytes])

    def _expand(self, block: Block) -> VariableWidth:
        codes = variable_values(block, "fsst")
        if not self.coded:
            return codes
        room = MAX_SYMBOL * (int(codes.offsets[-1]) - int(codes.offsets[0])) + SLACK
        offsets: NDArray[Any] = unset(codes.count + 1, np.int32 if room <= MAX_INT32 else np.int64)
        data = np.empty(room, np.uint8)
        places = np.empty(PLACES, np.int64)
        ends = readonly(codes.offsets)
        status = expand(readonly(codes.data), ends, self.symbols, self.lengths, offsets, data, places)
        check_status(status, "fsst", "at or after value")
        size = int(offsets[-1])
        data.resize(size, refcheck=False)
        return VariableWidth(narrow_offsets(offsets, size), data)
