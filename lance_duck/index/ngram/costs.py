"""The thresholds for writing, reading and caching n-gram indexes, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/ngrams.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

LIST_BYTES: Final = 64 << 20
"""Posting list cache size of an open index, in bytes."""

MOST_LISTS: Final = 16
"""Maximum number of posting lists that are read per search string. Strings with more trigrams use a selection, because
the lists of overlapping trigrams have almost the same rows."""

MOST_TEXTS: Final = 8
"""Maximum number of values of an IN query that the index supports. With more values, most pages are read anyway."""

LISTS_AT_ONCE: Final = 1024
"""Maximum number of posting lists that are read or written together. Limits memory."""
