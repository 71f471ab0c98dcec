"""The thresholds by which writers choose an encoding: each with its unit and its reason.

A threshold changes the size of a file and how fast it is written and read, never what is read. `benchmarks/sizes.py`
measures the sizes and speeds that all of them give together; those that were found by it say so, the others were not
measured one by one.
"""

from __future__ import annotations

from typing import Final

WORTH: Final = 0.95
"""Part of the plain size that an encoded form may have: a smaller gain does not pay for decoding. Not measured."""

LEVEL_RUNS_WORTH: Final = 0.9
"""Part of the size of packed levels that runs may have: packed ones are read faster. Not measured."""

# Numbers and general compression

CHUNK_VALUES: Final = 4096
"""Values of a miniblock chunk at most: as pylance writes them."""

COMPRESSED_BYTES: Final = 4096
"""Bytes of a page from which on general compression is tried: less saves hardly a page of memory. Not measured."""

SPLIT_BITS: Final = (32, 64)
"""Bits of numbers whose bytes may be set apart before general compression: the widths that byte stream split has."""

SPLIT_PIECES: Final = 3
SPLIT_PIECE: Final = 4096
"""Pieces, and values of each, on which byte stream split is tried: beginning, middle and end. Not measured."""

# Dictionaries

DICTIONARY_VALUES: Final = 100
"""Values of a page below which no dictionary is tried: it could save a few hundred bytes. Not measured."""

DICTIONARY_ITEMS: Final = 1 << 16
"""Distinct values of a dictionary at most: a table to find them stays in the processor's cache. Not measured."""

DICTIONARY_DIVISOR: Final = 2
"""Values for each distinct one, at least, where the field does not say. Not measured."""

DICTIONARY_PIECES: Final = 64
DICTIONARY_SAMPLE: Final = DICTIONARY_PIECES * DICTIONARY_PIECES
"""Values that are counted before all are: so many pieces of so many neighbours, so that runs and cycles are seen."""

DICTIONARY_SURE: Final = 1.25
"""Times more distinct values than `DICTIONARY_ITEMS` that a sample may let expect: estimates miss by about a fifth."""

DICTIONARY_NEW: Final = 0.97
"""Part of a sample's values that are distinct from which on a dictionary is not tried: no estimate is possible then."""

DICTIONARY_SHRUNK: Final = 0.4
"""Part of their size that compressed items are hoped to take before it is tried. Not measured."""

DICTIONARY_TEXTS: Final = 0.3
"""Part of the size of texts below which a dictionary is smaller than any symbols make them: FSST rarely saves more."""

# Texts and large values

SYMBOL_BYTES: Final = 32 * 1024
"""Bytes of texts from which on a symbol table is trained: it takes up to 2,312 bytes itself. As pylance writes."""

SYMBOL_LENGTH: Final = 5
"""Bytes of the longest text from which on a symbol table is trained: symbols have up to 8 bytes. Not measured."""

ALONE_BYTES: Final = 32 * 1024
"""Bytes of the longest value beyond which each value is compressed by itself. As pylance writes."""

ALONE_TRIED: Final = 16
ALONE_TRIED_BYTES: Final = 8 * 1024
"""Values, and first bytes of each, that tell whether compression helps: 128 KiB at most. Not measured."""

# Layouts

ZIPPED_BYTES: Final = 256
"""Bytes of an average value from which on values are zipped with their levels. As pylance writes."""

MINIBLOCK_VALUES: Final = 64
"""Values of a chunk below which a page with that many levels is zipped: chunks would be mostly heads. Not measured."""

FEW_VALUES: Final = 32
FEW_BYTES: Final = 1024
"""Entries, and bytes of values, up to which a page is written plain: other forms save less than two of the 64-byte
gaps between buffers, and looking for them takes two thirds of the time of encoding. `benchmarks/appends.py`.
Below 64 entries levels take no more room as words than packed."""
