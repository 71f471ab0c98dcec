"""The thresholds by which n-gram indexes are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer; `benchmarks/ngrams.py` measures what they give together.
"""

from __future__ import annotations

from typing import Final

LIST_BYTES: Final = 64 << 20
"""Bytes of posting lists that an open index keeps: a bound of memory."""

MOST_LISTS: Final = 16
"""Posting lists that are read for one text that is searched for: those between them have almost the same rows."""

MOST_TEXTS: Final = 8
"""Texts up to which an equality is asked of an index as so many searches: with more, most pages are read anyway."""

LISTS_AT_ONCE: Final = 1024
"""Posting lists that are read or written at once at most: a bound of memory."""
