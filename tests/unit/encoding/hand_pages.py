"""Handmade pages: levels of nested rows, and the bytes of each layout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lance_duck.encoding.layouts.assemble import Structure
from lance_duck.encoding.layouts.page import EncodingDescription, Page
from lance_duck.store.request import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

Encoding = pb.CompressiveEncoding
ITEM, LIST = pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST


@dataclass
class Memory:
    """An in-memory file that records reads."""

    remote = False

    data: bytearray = field(default_factory=bytearray)
    path: str = "memory"
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        self.reads += ranges
        return [np.frombuffer(bytes(self.data[offset : offset + size]), np.uint8) for offset, size in ranges]


def flat(bits: int) -> Encoding:
    return Encoding(flat=pb.Flat(bits_per_value=bits))


def variable(bits: int = 32) -> Encoding:
    return Encoding(variable=pb.Variable(offsets=flat(bits)))


def page_of(layout: pb.PageLayout, buffers: Sequence[bytes], num_rows: int) -> Page:
    """Return a page whose buffers are adjacent in memory."""
    source = Memory()
    extents = []
    for buffer in buffers:
        extents.append((len(source.data), len(buffer)))
        source.data += buffer
    description = EncodingDescription("/lance.encodings21.PageLayout", layout.SerializeToString())
    return Page(source, "memory: page", tuple(extents), num_rows, 0, description)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def u16(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, dtype="<u2").tobytes()


def chunk(buffers: Sequence[bytes], rep: Sequence[int] | None = None, def_: Sequence[int] | None = None) -> bytes:
    """A chunk of a 2.2 page, its levels as plain 16-bit numbers."""
    levels = [u16(part) for part in (rep, def_) if part is not None]
    count = len(rep) if rep is not None else len(def_) if def_ is not None else 0
    header = u16([count, *map(len, levels)]) + np.array([len(b) for b in buffers], dtype="<u4").tobytes()
    return b"".join(map(padded, [header, *levels, *buffers]))


def chunk_words(chunks: Sequence[bytes], logs: Sequence[int], width: int = 4) -> bytes:
    words = [(len(c) // 8 - 1) << 4 | log for c, log in zip(chunks, logs, strict=True)]
    return np.array(words, dtype=f"<u{width}").tobytes()


@dataclass
class Raveled:
    """Rows as levels.

    Attributes:
        values: One value per slot; nulls are None.
    """

    rep: list[int]
    def_: list[int]
    values: list[Any]


def ravel(rows: Sequence[Any], structure: Structure) -> Raveled:
    """Return the levels of rows: lists or None, tuples or None for structs, numbers or None for leaves."""
    found = Raveled([], [], [])

    def put(rep: int, def_: int) -> None:
        found.rep.append(rep)
        found.def_.append(def_)
        if def_ <= structure.visible[0]:
            found.values.append(None)

    def walk(value: Any, layer: int, rep: int) -> None:
        base = structure.base[layer]
        if value is None:
            put(rep, base + 1)
        elif layer == 0:
            put(rep, 0)
            found.values[-1] = value
        elif not structure.lists[layer]:
            walk(value[0], layer - 1, rep)
        elif not value:
            put(rep, base + 2)
        else:
            for i, item in enumerate(value):
                walk(item, layer - 1, rep if i == 0 else structure.rep[layer] - 1)

    for row in rows:
        walk(row, len(structure.lists) - 1, structure.max_rep)
    return found


def structure_of(*lists: bool) -> Structure:
    """Layers, innermost first: whether each is a list."""
    return Structure(lists, (1,) * len(lists))


def layers_of(structure: Structure) -> list[int]:
    return [LIST if is_list else ITEM for is_list in structure.lists]


def nested_page(rows: Sequence[Any], structure: Structure, items_in_chunk_log: int = 2) -> Page:
    """A miniblock page of int32 values; each chunk but the last has 2 ** items_in_chunk_log of them."""
    levels = ravel(rows, structure)
    visible = [d <= structure.visible[0] for d in levels.def_]
    cuts = [0]
    seen = 0
    for i, is_visible in enumerate(visible):
        seen += is_visible
        if is_visible and seen % (1 << items_in_chunk_log) == 0 and any(visible[i + 1 :]):
            cuts.append(i + 1)
    cuts.append(len(visible))
    chunks, index = [], []
    for a, b in itertools.pairwise(cuts):
        first, last = sum(visible[:a]), sum(visible[:b])
        data = np.array([v or 0 for v in levels.values[first:last]], dtype="<i4").tobytes()
        rep = levels.rep[a:b] if structure.max_rep else None
        chunks.append(chunk([data], rep, levels.def_[a:b]))
        heads = [i for i in range(a, b) if levels.rep[i] == structure.max_rep]
        goes_on = b < len(visible) and levels.rep[b] != structure.max_rep
        starts_inside = levels.rep[a] != structure.max_rep if a < b else False
        index += [len(heads) - goes_on + starts_inside, b - heads[-1] if goes_on and heads else int(goes_on)]
    layout = pb.MiniBlockLayout(
        def_compression=flat(16),
        value_compression=flat(32),
        layers=layers_of(structure),
        num_buffers=1,
        repetition_index_depth=int(structure.max_rep > 0),
        num_items=len(levels.values),
        has_large_chunk=True,
    )
    buffers = [chunk_words(chunks, [items_in_chunk_log] * (len(chunks) - 1) + [0]), b"".join(chunks)]
    if structure.max_rep:
        layout.rep_compression.CopyFrom(flat(16))
        buffers.append(np.array(index, dtype="<u8").tobytes())
    return page_of(pb.PageLayout(mini_block_layout=layout), buffers, len(rows))
