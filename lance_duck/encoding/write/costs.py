"""The thresholds by which writers choose an encoding: each with its unit and its reason.

A threshold changes the size of a file and how fast it is written and read, never what is read. `benchmarks/sizes.py`
measures what all of them give together, `benchmarks/encoding_costs.py` one by one, with columns that a threshold
decides about: figures here are of its runs on two cores, and "within noise" says that sizes were equal and times
differed by less than a tenth, or without order. "As pylance writes" says that other writers of the format decide so,
too.
"""

from __future__ import annotations

from typing import Final

WORTH: Final = 0.95
"""Part of the plain size that an encoded form may have: a smaller gain does not pay for decoding.
`benchmarks/encoding_costs.py`: with 1, numbers of 62 bits take 0.97 of the bytes and 1.3 of the time to write, and
texts of random letters 0.99 and twice the time, to read, too; with 0.8, numbers of 60 bits take 1.06 of the bytes."""

LEVEL_RUNS_WORTH: Final = 0.9
"""Part of the size of packed levels that runs may have: packed levels are read faster. `benchmarks/encoding_costs.py`:
with 1.8, numbers whose nulls come in runs of 10 are read and written in 1.1 of the time, and are no smaller."""

# Numbers and general compression

CHUNK_VALUES: Final = 4096
"""Values of a miniblock chunk at most: as pylance writes them."""

COMPRESSED_BYTES: Final = 4096
"""Bytes of a page from which on general compression is tried. As pylance writes. `benchmarks/encoding_costs.py`: 60
texts are within noise from 2 to 8 KiB; 30 texts take twice the bytes with 8 KiB."""

SPLIT_BITS: Final = (32, 64)
"""Bits of numbers whose bytes may be set apart before general compression: the widths that byte stream split has."""

SPLIT_PIECES: Final = 3
SPLIT_PIECE: Final = 4096
"""Pieces, and values of each, on which byte stream split is tried: beginning, middle and end.
`benchmarks/encoding_costs.py`: with pieces of 16,384, floats take 1.2 of the time to write; sizes are equal from 1,024
to 16,384."""

# Dictionaries

DICTIONARY_VALUES: Final = 100
"""Values of a page below which no dictionary is tried: as pylance writes. `benchmarks/encoding_costs.py`: with 200, 150
texts of which 20 are distinct take 7 times the bytes and 0.8 of the time; with 25, a page of 40 texts takes 0.2 of the
bytes, and 1.2 of the time."""

DICTIONARY_ITEMS: Final = 1 << 16
"""Distinct values of a dictionary at most: a table to find them stays in the processor's cache.
`benchmarks/encoding_costs.py`: with half as many, texts of 40,000 distinct ones take 2.8 times the bytes; with twice as
many, texts of 40,000 and 90,000 distinct ones are within noise."""

DICTIONARY_DIVISOR: Final = 2
"""Values for each distinct one, at least, where the field does not say. As pylance writes.
`benchmarks/encoding_costs.py`: with 1, texts that come one and a half times are written in 1.5 of the time and are no
smaller; with 4, texts that come three times in 0.7, at the same size, as symbols do as well there."""

DICTIONARY_PIECES: Final = 64
DICTIONARY_SAMPLE: Final = DICTIONARY_PIECES * DICTIONARY_PIECES
"""Values that are counted before all are: so many pieces of so many neighbours, so that runs and cycles are seen."""

DICTIONARY_SURE: Final = 1.25
"""Times more distinct values than `DICTIONARY_ITEMS` that a sample may let expect: estimates miss by about a fifth."""

DICTIONARY_NEW: Final = 0.97
"""Part of a sample's values that are distinct from which on a dictionary is not tried: no estimate is possible then."""

DICTIONARY_SHRUNK: Final = 0.4
"""Part of their size that compressed items are hoped to take before it is tried. `benchmarks/encoding_costs.py`: within
noise from 0.2 to 0.8."""

DICTIONARY_TEXTS: Final = 0.3
"""Part of the size of texts below which a dictionary is smaller than any symbols make them: FSST rarely saves more."""

# Texts and large values

SYMBOL_BYTES: Final = 32 * 1024
"""Bytes of texts from which on a symbol table is trained: it takes up to 2,312 bytes itself. As pylance writes."""

SYMBOL_LENGTH: Final = 5
"""Bytes of the longest text from which on a symbol table is trained: symbols have up to 8 bytes. As pylance writes.
`benchmarks/encoding_costs.py`: with 9, texts of 8 digits take 1.5 times the bytes and 0.4 of the time."""

ALONE_BYTES: Final = 32 * 1024
"""Bytes of the longest value beyond which each value is compressed by itself. As pylance writes."""

ALONE_TRIED: Final = 16
ALONE_TRIED_BYTES: Final = 8 * 1024
"""Values, and first bytes of each, that tell whether compression helps: 128 KiB at most.
`benchmarks/encoding_costs.py`: within noise from a quarter to four times of each."""

# Layouts

ZIPPED_BYTES: Final = 256
"""Bytes of an average value from which on values are zipped with their levels. As pylance writes."""

MINIBLOCK_VALUES: Final = 64
"""Values of a chunk below which a page with that many levels is zipped: chunks would be mostly heads.
`benchmarks/encoding_costs.py`: with 256, a number in 400 lists takes 1.16 of the bytes, and 1.3 to 1.6 of the time;
with 16 it is within noise."""

FEW_VALUES: Final = 32
FEW_BYTES: Final = 1024
"""Entries, and bytes of values, up to which a page is written plain: other forms save less than two of the 64-byte
gaps between buffers, and looking for them takes two thirds of the time of encoding. `benchmarks/appends.py`.
Below 64 entries levels take no more room as words than packed."""
