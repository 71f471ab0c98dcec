"""Digests of a data file's sidecars: one block in the data file, written like its other buffers.

    count         u64                     number of sidecars
    sidecars      each u64, u64           id and size in bytes
    digests       each u64                per sidecar block, in order

The descriptor stores the position and size of the block, u64 each, in field 50002, before field 50001 of
`checksums.container`. Sidecars contain only blobs, because some readers treat a whole sidecar as one blob.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from lance_duck.checksums.container import MARK_BYTES, Checksums, damaged
from lance_duck.checksums.digests import Digests, num_blocks

_COUNT: Final = struct.Struct("<Q")
_PLACE: Final = struct.Struct("<QQ")
_TAG: Final = b"\x92\xb5\x18\x10"  # field 50002, bytes, 16 of them


def sidecar_block(sidecars: Sequence[tuple[int, int, Digests]]) -> bytes:
    """Return the digest block for sidecars, each given as (id, size in bytes, digests)."""
    parts = [_COUNT.pack(len(sidecars)), *(_PLACE.pack(blob_id, size) for blob_id, size, _ in sidecars)]
    return b"".join([*parts, *(digests.astype("<u8").tobytes() for _, _, digests in sidecars)])


def sidecar_mark(position: int, size: int) -> bytes:
    """Return the descriptor field that holds the position and size of the block."""
    return _TAG + _PLACE.pack(position, size)


def read_sidecar_mark(descriptor: bytes) -> tuple[int, int] | None:
    """Return the block's position and size from a descriptor, or None if the descriptor does not name a block."""
    end = descriptor[-2 * MARK_BYTES : -MARK_BYTES]
    return _PLACE.unpack(end[len(_TAG) :]) if len(end) == MARK_BYTES and end.startswith(_TAG) else None


def read_sidecar_block(data: bytes, where: str) -> Mapping[int, Checksums]:
    """Return the checksums of sidecars, by id.

    Args:
        data: The block.
        where: Name of the data file, for messages.

    Raises:
        CorruptError: The block contradicts itself.
    """
    if len(data) % _COUNT.size == 0 and len(data) >= _COUNT.size:
        numbers = np.frombuffer(data, "<u8")
        count = int(numbers[0])
        if count <= (len(numbers) - 1) // 2:
            places = numbers[1 : 1 + 2 * count].reshape(count, 2)
            digests = numbers[1 + 2 * count :]
            if (places[:, 1] >> np.uint64(62) == 0).all():
                ends = np.cumsum(num_blocks(places[:, 1])).tolist()
                if len(digests) == (ends or [0])[-1]:
                    pieces = [digests[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
                    return {
                        int(blob_id): Checksums(np.array([[0, size]], np.uint64), piece)
                        for (blob_id, size), piece in zip(places.tolist(), pieces, strict=True)
                    }
    raise damaged("the digests of blobs beside it", where)
