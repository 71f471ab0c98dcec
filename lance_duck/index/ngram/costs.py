"""The thresholds by which n-gram indexes are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer. `benchmarks/ngrams.py` measures what they give together; none was
measured by itself.
"""

from __future__ import annotations

from typing import Final

LIST_BYTES: Final = 64 << 20
"""Bytes of posting lists that an open index keeps."""

ROW_SET_BYTES: Final = 256
"""Bytes that a set of rows has besides its values, about."""

MOST_LISTS: Final = 16
"""Posting lists that are read for one text that is searched for: those between them have almost the same rows."""

MOST_TEXTS: Final = 8
"""Texts up to which an equality is asked of an index as so many searches."""

LISTS_AT_ONCE: Final = 1024
LIST_BLOCK_BYTES: Final = 8 << 20
"""Posting lists that are read or written at once at most, and their bytes, about."""

FOLLOWED_ROWS: Final = 1 << 18
"""Rows of posting lists that get their new names at once, about."""

RUN_BYTES: Final = 16 << 20
"""Bytes of texts whose trigrams are found at once: their postings take about twice as much."""
