"""The thresholds by which partitions are encoded: each with its unit and its reason."""

from __future__ import annotations

from typing import Final

FST_SLOTS: Final = 1 << 12
"""Nodes of the automaton that are remembered while it is made, so that equal ones are shared. More of them make it
larger, for a node far away takes more bytes to name, and take memory: of 30,000 words, 2^18 by 2 % of the bytes, in the
same time; 2^8 make it larger by 8 % (`benchmarks/postings.py`)."""


LONGEST_WALKED: Final = 256
"""Characters of a word up to which an automaton is walked for terms near to it: a row of the table of distances takes
eight bytes for each."""
