"""Sparse pages of 2.3. Each layer has positions of nulls or non-empty lists. Values are stored without levels.

The page begins with the buffers of its values. They contain one value for each slot of the innermost layer, including
nulls. The stored numbers follow, in this order for each layer, outermost first:

    list               | positions of lists with items, their item counts, positions for validity
    other layers       | positions for validity

A position is the number of a slot in its layer. The slots of the outermost layer are rows. Below a list, slots are the
items of all lists, in order. Below a fixed-size list, each list counts as many slots as it has items. Numbers that take
zero bytes do not have a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, intersection_of, union_of
from lance_duck.encoding.arrow.take import take
from lance_duck.encoding.codec_checks import MOST_UNSTORED, one_chunk
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.sequences import sequence_from_proto
from lance_duck.encoding.layouts.layers import NULL_AND_EMPTY_LIST, NULLABLE_ITEM, Layers, parse_layers
from lance_duck.encoding.layouts.page import Leaf, Page, PageReader, Rows
from lance_duck.encoding.layouts.page_rows import as_array, check_rows, expand_ranges
from lance_duck.encoding.layouts.planar.dense import page_layout, without_levels
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import Bytes, Request
from lance_duck.wire.pb import encodings21_pb2, encodings23_pb2

Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]
OpenDense = Callable[[Page, encodings21_pb2.PageLayout], PageReader]

_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity of the slots of a layer.

    Attributes:
        places: int64, ascending: positions of the null slots, or of the valid slots.
        are_nulls: Whether `places` lists the null slots.
    """

    places: Int64s
    are_nulls: bool

    def nulls(self, slots: Int64s) -> Flags:
        """Return, for each of the given slots, whether it is null."""
        nulls: Flags = np.equal(_contains(self.places, slots), self.are_nulls)
        return nulls


@dataclass(frozen=True, slots=True)
class LayerNumbers:
    """The stored numbers of a layer.

    Attributes:
        validity: Validity of its slots.
        is_list: Whether the layer consists of lists.
        places: int64, positions of the slots whose lists have items.
        ends: int64 (len(places) + 1,), number of items before each of these lists, then the total.
        stride: Number of page rows per slot, for layers around fixed-size lists.
    """

    validity: Validity
    is_list: bool = False
    places: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    ends: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    stride: int = 1


class SparseReader:
    """A reader of a sparse page.

    Args:
        page: The page.
        layout: Description of the page.
        open_: Opens a page without levels from its 2.2 description.

    Raises:
        CorruptError: The description contradicts itself.
        UnsupportedError: A layer or an encoding is not supported.
    """

    def __init__(self, page: Page, layout: encodings23_pb2.PlanarLayout, open_: OpenDense) -> None:
        protos = layout.structure.sparse.layers
        kinds = [NULL_AND_EMPTY_LIST if p.WhichOneof("layer") == "list" else NULLABLE_ITEM for p in protos]
        self._layers = parse_layers(kinds[::-1], page.where)
        self._page = page
        self._layout = layout
        self._protos = protos
        self._open = open_
        self._slots = 0
        self._state: tuple[list[LayerNumbers], PageReader] | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Whether blocks are returned as dictionaries: of one value, or of the page's dictionary."""
        values = self._layout.values
        return values.WhichOneof("values") != "zipped" and (
            not values.HasField("chunked") or values.chunked.HasField("dictionary")
        )

    @property
    def is_prepared(self) -> bool:
        """Whether the positions have been read, and the page of the values is prepared."""
        return self._state is not None and self._state[1].is_prepared

    @property
    def has_levels(self) -> bool:
        """Always True: positions of null slots replace levels."""
        return True

    @property
    def has_item_validity(self) -> bool:
        """Always True: which items are null is unknown until the positions are read."""
        return True

    def read_points(self, rows: Int64s) -> Leaf | None:
        """Always None: rows can only be read by `read`."""
        return None

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows. Only the first call reads the positions. Later calls only read values."""
        count = check_rows(rows, self.num_rows)
        state = self._state
        if state is None:
            state = self._state = yield from self._load()
        layers, values = state
        entries = _SparseEntries(as_array(rows), self._layers, self._page.where)
        for layer in layers:
            entries.descend(layer)
        visible = entries.levels <= self._layers.max_visible
        slots, filled = entries.slots[visible], entries.levels[visible] == 0
        if values.num_rows == self._slots:
            block = (yield from values.read(slots)).block
        elif filled.any():
            block = (yield from values.read(_ranks(layers, slots[filled]))).block
            block = block and take(block, np.where(filled, np.cumsum(filled) - 1, 0))
        else:
            block = None
        rep = entries.rep if self._layers.max_rep else None
        return Leaf(block, rep, entries.levels, self._layers, len(slots), count)

    def _load(self) -> Request[tuple[list[LayerNumbers], PageReader]]:
        page = self._page
        first = len(page.buffers) - sum(map(_is_stored, _encodings(self._protos)))
        if first < 0:
            raise CorruptError("the page has too few buffers", where=page.where, found=len(page.buffers))
        pieces = yield [page.byte_range(i) for i in range(first, len(page.buffers))]
        numbers = _StoredNumbers(pieces, page.where)
        slots, stride = page.num_rows, 1
        for proto in self._protos:
            stride *= proto.fixed_size_list.dimension if proto.WhichOneof("layer") == "fixed_size_list" else 1
        if stride < 1 or page.num_rows % stride:
            raise CorruptError(
                "the row count does not fit the fixed-size lists",
                where=page.where,
                expected=f"a multiple of {stride}",
                found=slots,
            )
        slots //= stride
        layers = []
        for proto in self._protos:
            layer = numbers.layer(proto, slots, stride)
            if proto.WhichOneof("layer") == "fixed_size_list":
                stride //= proto.fixed_size_list.dimension
                slots *= proto.fixed_size_list.dimension
            if layer.is_list:
                slots = int(layer.ends[-1])
            layers.append(layer)
        self._slots = slots
        stored = self._num_stored(layers, slots)
        values = replace(page, buffers=page.buffers[:first], num_rows=stored)
        return layers, self._open(values, page_layout(without_levels(self._layout, stored), page.where))

    def _num_stored(self, layers: list[LayerNumbers], slots: int) -> int:
        """Return the number of stored values. The page stores a value for all slots, or only for valid slots."""
        values = self._layout.values
        stated = values.zipped.num_items if values.HasField("zipped") else values.chunked.num_items
        if stated in (0, slots):
            return slots
        if any(layer.stride != 1 for layer in layers):
            raise UnsupportedError(
                "sparse pages of fixed-size lists must store a value for each slot", where=self._page.where
            )
        validity = _inner(layers)
        valid = slots - len(validity.places) if validity.are_nulls else len(validity.places)
        if stated != valid:
            raise CorruptError(
                "the value count of a sparse page is wrong", where=self._page.where, expected=valid, found=stated
            )
        return int(stated)


def _inner(layers: list[LayerNumbers]) -> Validity:
    """Return the validity of slots: a slot is null if any layer below the last list is null."""
    lists = [i for i, layer in enumerate(layers) if layer.is_list]
    nulls, valid = np.empty(0, np.int64), None
    for layer in layers[lists[-1] + 1 :] if lists else layers:
        places = layer.validity.places
        if layer.validity.are_nulls:
            nulls = union_of(nulls, places)
        else:
            valid = places if valid is None else intersection_of(valid, places)
    return Validity(nulls, True) if valid is None else Validity(difference_of(valid, nulls), False)


def _ranks(layers: list[LayerNumbers], slots: Int64s) -> Int64s:
    """Return, for each of the given valid slots, the number of valid slots before it."""
    validity = _inner(layers)
    before = np.searchsorted(validity.places, slots).astype(np.int64)
    return slots - before if validity.are_nulls else before


class _StoredNumbers:
    """The stored numbers of a page, read in order."""

    def __init__(self, pieces: list[Bytes], where: str) -> None:
        self._pieces = pieces
        self._where = where
        self._next = 0

    def layer(self, proto: encodings23_pb2.SparseLayer, slots: int, stride: int) -> LayerNumbers:
        """Read the numbers of a layer that has `slots` slots."""
        kind = proto.WhichOneof("layer")
        if kind is None:
            raise UnsupportedError("this kind of sparse page layer is not supported", where=self._where)
        if kind != "list":
            return LayerNumbers(self._validity(_validity_of(proto, kind), slots), stride=stride)
        places = self._places(proto.list.positions, proto.list.num_positions, slots)
        counts = self._read(proto.list.counts, len(places)).astype(np.int64)
        if len(counts) and (counts.min() < 0 or counts.max() > 1 << 40):
            raise CorruptError("the item count of a list is out of range", where=self._where, found=int(counts.max()))
        ends = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        if ends[-1] != proto.list.num_child_slots:
            raise CorruptError(
                "the item count of the lists is wrong",
                where=self._where,
                expected=proto.list.num_child_slots,
                found=int(ends[-1]),
            )
        return LayerNumbers(self._validity(proto.list.validity, slots), True, places, ends, stride)

    def _validity(self, proto: encodings23_pb2.SparseValidity, slots: int) -> Validity:
        meanings = (proto.NULL_POSITIONS, proto.VALID_POSITIONS)
        if proto.meaning not in meanings:
            raise CorruptError(
                "the validity of a layer has an unknown meaning",
                where=self._where,
                expected="1 or 2",
                found=proto.meaning,
            )
        places = self._places(proto.positions, proto.num_positions, slots)
        return Validity(places, proto.meaning == proto.NULL_POSITIONS)

    def _places(self, encoding: encodings21_pb2.CompressiveEncoding, count: int, slots: int) -> Int64s:
        places = self._read(encoding, count)
        if len(places) and (int(places.max()) >= slots or (places[1:] <= places[:-1]).any()):
            raise CorruptError(
                "the positions of a layer are invalid", where=self._where, expected=f"ascending, below {slots}"
            )
        return places.astype(np.int64)

    def _read(self, encoding: encodings21_pb2.CompressiveEncoding, count: int) -> NDArray[Any]:
        if _is_empty(encoding):
            if count:
                raise CorruptError(
                    "a layer without numbers declares some", where=self._where, expected="none", found=count
                )
            return np.empty(0, np.uint64)
        numbers = sequence_from_proto(encoding, _BITS, codec_from_proto)
        piece = np.empty(0, np.uint8)
        if numbers.num_buffers:
            piece = self._pieces[self._next]
            self._next += 1
        return numbers.decode(one_chunk(piece, count))


class _SparseEntries:
    """Entries of some rows, built layer by layer, outermost first.

    Attributes:
        rep: uint8, repetition level of each entry.
        levels: uint8, definition level of each entry.
        slots: int64, slot of each entry in the current layer.
    """

    def __init__(self, rows: Int64s, layers: Layers, where: str) -> None:
        self.rep = np.full(len(rows), layers.max_rep, np.uint8)
        self.levels = np.zeros(len(rows), np.uint8)
        self.slots = rows
        self._where = where
        self._lists = layers.max_rep
        self._level = layers.max_def + 1

    def descend(self, layer: LayerNumbers) -> None:
        """Move from a layer to the one below it."""
        self._level -= 2 if layer.is_list else 1
        live = np.flatnonzero(self.levels == 0)
        slots = self.slots[live] // layer.stride
        nulls = layer.validity.nulls(slots)
        self.levels[live[nulls]] = self._level
        if not layer.is_list:
            return
        self._lists -= 1
        ranks = np.searchsorted(layer.places, slots)
        filled = _contains(layer.places, slots) & ~nulls
        self.levels[live[~filled & ~nulls]] = self._level + 1
        ranks = ranks[filled]
        self._expand(live[filled], layer.ends[ranks], layer.ends[ranks + 1])

    def _expand(self, places: Int64s, firsts: Int64s, lasts: Int64s) -> None:
        """Replace the entries of lists by the entries of their items."""
        counts = np.ones(len(self.levels), np.int64)
        counts[places] = lasts - firsts
        total = int(counts.sum())
        if total > MOST_UNSTORED + len(counts):
            raise UnsupportedError(
                "too many list items would be read at once",
                where=self._where,
                expected=f"at most {MOST_UNSTORED}",
                found=total,
                remedy="read fewer rows at once",
            )
        heads = np.cumsum(counts) - counts
        rep = np.full(total, self._lists, np.uint8)
        rep[heads] = self.rep
        slots = np.repeat(self.slots, counts)
        inside = expand_ranges(heads[places], heads[places] + (lasts - firsts))
        slots[inside] = expand_ranges(firsts, lasts)
        self.rep, self.levels, self.slots = rep, np.repeat(self.levels, counts), slots


def _validity_of(proto: encodings23_pb2.SparseLayer, kind: str) -> encodings23_pb2.SparseValidity:
    return proto.item if kind == "item" else proto.fixed_size_list.validity


def _contains(places: Int64s, slots: Int64s) -> Flags:
    """Return whether each slot is in the ascending `places`."""
    if not len(places):
        return np.zeros(len(slots), np.bool_)
    ranks = np.searchsorted(places, slots)
    return np.equal(places[np.minimum(ranks, len(places) - 1)], slots)


def _encodings(protos: Iterable[encodings23_pb2.SparseLayer]) -> Iterator[encodings21_pb2.CompressiveEncoding]:
    """Yield the encodings of all numbers, in the order of their buffers."""
    for proto in protos:
        kind = proto.WhichOneof("layer")
        if kind == "list":
            yield proto.list.positions
            yield proto.list.counts
            yield proto.list.validity.positions
        elif kind is not None:
            yield _validity_of(proto, kind).positions


def _is_empty(encoding: encodings21_pb2.CompressiveEncoding) -> bool:
    kind = encoding.WhichOneof("compression")
    return kind is None or (kind == "constant" and not encoding.constant.HasField("value"))


def _is_stored(encoding: encodings21_pb2.CompressiveEncoding) -> bool:
    """Return whether numbers have a buffer."""
    return not _is_empty(encoding) and bool(sequence_from_proto(encoding, _BITS, codec_from_proto).num_buffers)
