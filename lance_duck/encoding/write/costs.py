"""Thresholds for choosing encodings, each with its unit and reason.

A threshold affects file size and the speed of writing and reading, never the values. Figures come from
`benchmarks/encoding_costs.py`, on two cores; `benchmarks/sizes.py` measures the combined effect.
"""

from __future__ import annotations

from typing import Final

WORTH: Final = 0.95
"""Maximum size of an encoded form, as a share of the plain size. With 1, numbers of 62 bits take 0.97 of the bytes, but
1.3 times as long to write. With 0.8, numbers of 60 bits take 1.06 times the bytes."""

SAMPLE: Final = 4096
"""Number of values in a sample, or number of bytes that are read of each large value in a sample. Sizes from 1/4 to 4
times this one give files of the same size."""

SAMPLE_PIECES: Final = 64
"""Number of slices in a sample, spread over a page. Each contains consecutive values, which preserves runs and
cycles."""

# Numbers and general compression

CHUNK_VALUES: Final = 4096
"""Maximum number of values in a miniblock chunk, as in pylance."""

COMPRESSED_BYTES: Final = 4096
"""Minimum page size for general compression, in bytes, as in pylance. With 8 KiB, 30 texts take twice the bytes."""

SPLIT_BITS: Final = (32, 64)
"""Widths of numbers, in bits, for which byte stream split may precede general compression."""

SPLIT_PIECES: Final = 3
"""Number of samples for which byte stream split is tried: beginning, middle and end."""

# Dictionaries

DICTIONARY_VALUES: Final = 100
"""Minimum page size for a dictionary, in values, as in pylance.

With 200, a page of 150 texts that contains 20 distinct texts takes 7 times the bytes.
"""

DICTIONARY_ITEMS: Final = 1 << 16
"""Maximum number of distinct values in a dictionary. With half of this number, a column of 40,000 distinct texts takes
2.8 times the bytes."""

DICTIONARY_DIVISOR: Final = 2
"""Minimum number of values per distinct value, as in pylance. Fields may set a different number.

With 1, texts that occur 1.5 times on average take 1.5 times as long to write and do not get smaller.
"""

DICTIONARY_NEW: Final = 0.97
"""Maximum share of distinct values in a sample to try a dictionary. With a larger share, the estimate is unreliable."""

DICTIONARY_TEXTS: Final = 0.3
"""FSST is not tried if a dictionary is smaller than this share of the text size, because symbols rarely save more."""

# Texts and large values

SYMBOL_BYTES: Final = 32 * 1024
"""Minimum size of texts to train a symbol table, in bytes, as in pylance. A table takes up to 2,312 bytes."""

SYMBOL_LENGTH: Final = 5
"""Minimum length of the longest text to train a symbol table, in bytes, as in pylance. With 9, texts of 8 digits take
1.5 times the bytes."""

ALONE_BYTES: Final = 32 * 1024
"""If the longest value has more bytes than this, values are compressed one by one, as in pylance."""

# Layouts

ZIPPED_BYTES: Final = 256
"""Minimum average value size for zipping values with their levels, in bytes, as in pylance."""

MINIBLOCK_VALUES: Final = 64
"""Minimum number of values in a chunk. If the levels leave room for fewer values, the page is written as full zip.

With 256 instead of 64, a column with one number in 400 lists takes 1.16 times the bytes and 1.3 to 1.6 times the time.
"""

FEW_VALUES: Final = 32
FEW_BYTES: Final = 1024
"""Maximum size of a page that is written plain, in entries and in bytes.

For small pages, other forms save less than the padding of two buffers. Choosing a form takes two thirds of the encoding
time (`benchmarks/appends.py`).
"""
