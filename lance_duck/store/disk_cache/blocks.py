"""A block of an object, as a file. Blocks have 1 MiB, and consist of pages of 16 KiB. A file has some or all pages.

    offset  size
    0       8     "lanceblk"
    8       32    name of the object in the cache
    40      8     size of the object in bytes
    48      8     digest of the object's e-tag
    56      8     number of the block: its offset in the object, divided by 1 MiB
    64      8     which pages the file has: bit 0 is the first page of the block
    72      512   digest of each page, 0 for a missing page
    584     8     digest of the 584 bytes before
    592     …     the pages in order; the last page of an object is shorter

Numbers are little-endian and unsigned. Digests are XXH3-64. The version of this layout is in the name of the folder.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import BinaryIO, Final

import numpy as np

from lance_duck.checksums.digests import digest
from lance_duck.store.request import Bytes

PAGE: Final = 16 << 10
"""Size of a page in bytes. Reads fetch whole pages. 100 scattered rows fetch 7 MB, and 10 MB with pages of 64 KiB."""
PAGES: Final = 64
"""Number of pages in a block."""
BLOCK: Final = PAGE * PAGES
"""Size of a block in bytes. A scan of 1 GB then reads a thousand files."""

_MAGIC: Final = b"lanceblk"
_HEADER: Final = struct.Struct(f"<8s32sQQQQ{PAGES}Q")
_DIGEST: Final = struct.Struct("<Q")
HEADER_BYTES: Final = _HEADER.size + _DIGEST.size


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One content of an object.

    Attributes:
        name: SHA-256 of the object's location.
        size: Size of the object in bytes.
        tag: Digest of the e-tag.
    """

    name: bytes
    size: int
    tag: int

    def page_bytes(self, page: int) -> int:
        """Return the size of a page of the object. Pages are numbered from the start of the object."""
        return min(PAGE, self.size - page * PAGE)


def encode_block(version: ObjectVersion, number: int, pages: Mapping[int, Bytes]) -> Bytes:
    """Return the content of a block's file.

    Args:
        version: The object.
        number: Number of the block.
        pages: At least one page of the block, by number.
    """
    first = number * PAGES
    bits = sum(1 << (page - first) for page in pages)
    digests = (digest(pages[page]) if page in pages else 0 for page in range(first, first + PAGES))
    header = _HEADER.pack(_MAGIC, version.name, version.size, version.tag, number, bits, *digests)
    whole = header + _DIGEST.pack(digest(header))
    return np.concatenate([np.frombuffer(whole, np.uint8), *(pages[page] for page in sorted(pages))])


def read_block(
    file: BinaryIO, file_size: int, version: ObjectVersion, number: int, wanted: Container[int] | None
) -> dict[int, Bytes] | None:
    """Read pages of a block.

    Args:
        file: The block's file.
        file_size: Size of the file in bytes.
        version: The object.
        number: Number of the block.
        wanted: The pages to read. None reads all pages.

    Returns:
        The wanted pages that the file has, by number. None if the file is damaged, or has another object's bytes.
    """
    header = file.read(HEADER_BYTES)
    if len(header) != HEADER_BYTES or digest(header[: _HEADER.size]) != _DIGEST.unpack(header[_HEADER.size :])[0]:
        return None
    magic, name, size, tag, found, bits, *digests = _HEADER.unpack(header[: _HEADER.size])
    if (magic, name, size, tag, found) != (_MAGIC, version.name, version.size, version.tag, number):
        return None
    first = number * PAGES
    present = [first + bit for bit in range(PAGES) if bits >> bit & 1]
    if file_size != HEADER_BYTES + sum(version.page_bytes(page) for page in present):
        return None
    pages = {}
    places = [place for place, page in enumerate(present) if wanted is None or page in wanted]
    for _, adjacent in groupby(enumerate(places), lambda each: each[1] - each[0]):
        run = [place for _, place in adjacent]
        file.seek(HEADER_BYTES + run[0] * PAGE)
        data = np.frombuffer(file.read(len(run) * PAGE), np.uint8)
        for at, place in enumerate(run):
            page = data[at * PAGE : (at + 1) * PAGE]
            if digest(page) != digests[present[place] - first]:
                return None
            pages[present[place]] = page
    return pages
