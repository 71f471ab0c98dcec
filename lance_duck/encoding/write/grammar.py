"""The grammar of pages for each file version: the forms that every reader of the version supports.

version | oldest reader | new in this version
2.0     | pylance 0.30  | arrays of arrays, without levels: `encoding.v20`
2.1     | pylance 1.0   | layouts and levels; chunks of at most 32 KiB
2.2     | pylance 4.0   | chunk words of 32 bits, constant pages with a value, compressed dictionaries, runs of levels

pylance 14 also reads the following forms, and writes some of them. They are excluded here:

    runs of levels in 2.1                       pylance 1 and 2 panic
    constant pages of lists of nulls            pylance 1 to 4 lose rows
    null items, no null or empty list, 2.1      pylance 1 and 2 lose rows
    booleans in full-zip pages                  pylance 1 to 4 read wrong values

Names of encodings are field names of `CompressiveEncoding` and, for 2.0, of `ArrayEncoding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_NUMBERS: Final = frozenset({"flat", "inline_bitpacking", "rle", "byte_stream_split"})
_TEXTS: Final = frozenset({"variable", "fsst"})
_FIXED: Final = frozenset({"fixed_size_list", "packed_struct", "constant"})
_ITEMS: Final = frozenset({"flat", "variable", "inline_bitpacking", "out_of_line_bitpacking", "fixed_size_list"})


@dataclass(frozen=True, slots=True)
class Grammar:
    """The forms that a page of a file version may have.

    Attributes:
        chunk_values: Encodings of the values of a miniblock page, including nested encodings.
        single_values: Encodings of values in full-zip pages, which are encoded one by one.
        dictionary: Encodings of the items of a dictionary.
        dictionary_bits: Bits of numbers that may have a dictionary.
        levels: Encodings of repetition and definition levels.
        has_large_chunks: Whether chunk words and sizes of chunk buffers have 32 bits instead of 16.
        max_chunk_bytes: Maximum size of a chunk, in bytes, including headers.
        max_value_bytes: Maximum size of a text in a chunk, in bytes.
        max_runs_bits: Maximum width of numbers, in bits, for which 4096 runs fit in a chunk. Chunks of wider numbers
            have 2048 values.
        has_constants: Whether a constant page may have a value. Otherwise, it only contains nulls.
        has_constant_lists: Whether lists whose items are all null may be a constant page.
        constant_levels: Encodings of the levels of all-null pages. Empty if these levels are stored raw.
        has_variable_packed_structs: Whether packed structs may have fields of variable width.
        has_dense_nulls: Whether a page of lists may have levels for null items without levels for null or empty lists.
        has_zipped_bits: Whether full-zip pages may hold booleans.
    """

    chunk_values: frozenset[str]
    single_values: frozenset[str]
    dictionary: frozenset[str]
    dictionary_bits: frozenset[int]
    levels: frozenset[str]
    has_large_chunks: bool
    max_chunk_bytes: int
    max_value_bytes: int
    max_runs_bits: int
    has_constants: bool
    has_constant_lists: bool
    constant_levels: frozenset[str]
    has_variable_packed_structs: bool
    has_dense_nulls: bool
    has_zipped_bits: bool


_LEVELS_21: Final = frozenset({"out_of_line_bitpacking", "flat"})
_LEVELS_22: Final = _LEVELS_21 | {"rle"}

GRAMMARS: Final[Mapping[str, Grammar]] = MappingProxyType(
    {
        "2.1": Grammar(
            chunk_values=_NUMBERS | _TEXTS | _FIXED | {"general"},
            single_values=_TEXTS | _FIXED | {"flat", "general"},
            dictionary=_ITEMS,
            dictionary_bits=frozenset({128}),
            levels=_LEVELS_21,
            has_large_chunks=False,
            max_chunk_bytes=1 << 15,
            max_value_bytes=(1 << 15) - 256,
            max_runs_bits=32,
            has_constants=False,
            has_constant_lists=False,
            constant_levels=frozenset(),
            has_variable_packed_structs=False,
            has_dense_nulls=False,
            has_zipped_bits=False,
        ),
        "2.2": Grammar(
            chunk_values=_NUMBERS | _TEXTS | _FIXED | {"general"},
            single_values=_TEXTS | _FIXED | {"flat", "general", "variable_packed_struct"},
            dictionary=_ITEMS | {"general"},
            dictionary_bits=frozenset({64, 128}),
            levels=_LEVELS_22,
            has_large_chunks=True,
            max_chunk_bytes=1 << 31,
            max_value_bytes=1 << 31,
            max_runs_bits=64,
            has_constants=True,
            has_constant_lists=False,
            constant_levels=_LEVELS_22,
            has_variable_packed_structs=True,
            has_dense_nulls=True,
            has_zipped_bits=False,
        ),
    }
)
"""Grammars of the versions with page layouts."""

ARRAYS_20: Final = frozenset(
    {"flat", "nullable", "fixed_size_list", "list", "struct", "binary", "dictionary", "fsst", "packed_struct"}
)
"""Encodings of the arrays of 2.0 pages."""
COMPRESSIONS_20: Final = frozenset({"zstd", "lz4"})
"""General compression of byte strings in 2.0 pages."""
