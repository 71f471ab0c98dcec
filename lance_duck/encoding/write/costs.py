"""The thresholds by which writers choose an encoding: each with its unit and its reason.

A threshold changes the size of a file and how fast it is written and read, never what is read. Figures are of
`benchmarks/encoding_costs.py`, on two cores; `benchmarks/sizes.py` measures what all of them give together.
"""

from __future__ import annotations

from typing import Final

WORTH: Final = 0.95
"""Part of the plain size that an encoded form may have: with 1, numbers of 62 bits take 0.97 of the bytes and 1.3 of
the time to write, with 0.8, numbers of 60 bits take 1.06 of the bytes."""

SAMPLE: Final = 4096
"""Values, or bytes of a value, that a sample has: from a quarter to four times as many, sizes are equal."""

SAMPLE_PIECES: Final = 64
"""Pieces of neighbours, or large values, from all over a page, of which a sample is made: runs and cycles are seen."""

# Numbers and general compression

CHUNK_VALUES: Final = 4096
"""Maximum number of values of a miniblock chunk, as pylance writes."""

COMPRESSED_BYTES: Final = 4096
"""Bytes of a page from which on general compression is tried, as pylance does: 30 texts take twice the bytes with 8
KiB."""

SPLIT_BITS: Final = (32, 64)
"""Bits of numbers whose bytes may be set apart before general compression: the widths that byte stream split has."""

SPLIT_PIECES: Final = 3
"""Samples on which byte stream split is tried: beginning, middle and end."""

# Dictionaries

DICTIONARY_VALUES: Final = 100
"""Values of a page below which no dictionary is tried, as pylance does: with 200, 150 texts of which 20 are distinct
take 7 times the bytes."""

DICTIONARY_ITEMS: Final = 1 << 16
"""Maximum number of distinct values of a dictionary: with half as many, texts of 40,000 distinct ones take 2.8 times
the bytes."""

DICTIONARY_DIVISOR: Final = 2
"""Values for each distinct one, at least, where the field does not say, as pylance has: with 1, texts that come one and
a half times take 1.5 of the time to write and are no smaller."""

DICTIONARY_NEW: Final = 0.97
"""Part of a sample's values that are distinct from which on a dictionary is not tried: no estimate is possible then."""

DICTIONARY_TEXTS: Final = 0.3
"""Part of the size of texts below which a dictionary is smaller than any symbols make them: FSST rarely saves more."""

# Texts and large values

SYMBOL_BYTES: Final = 32 * 1024
"""Bytes of texts from which on a symbol table is trained, as pylance does: it takes up to 2,312 bytes itself."""

SYMBOL_LENGTH: Final = 5
"""Bytes of the longest text from which on a symbol table is trained, as pylance does: with 9, texts of 8 digits take
1.5 times the bytes."""

ALONE_BYTES: Final = 32 * 1024
"""Bytes of the longest value beyond which each value is compressed by itself, as pylance does."""

# Layouts

ZIPPED_BYTES: Final = 256
"""Bytes of an average value from which on values are zipped with their levels, as pylance does."""

MINIBLOCK_VALUES: Final = 64
"""Values of a chunk below which a page with that many levels is zipped: with 256, a number in 400 lists takes 1.16 of
the bytes and 1.3 to 1.6 of the time."""

FEW_VALUES: Final = 32
FEW_BYTES: Final = 1024
"""Entries, and bytes of values, up to which a page is written plain: other forms save less than two gaps between
buffers, and finding them takes two thirds of the time of encoding (`benchmarks/appends.py`)."""
