"""The thresholds by which partitions are encoded: each with its unit and its reason."""

from __future__ import annotations

from typing import Final

FST_SLOTS: Final = 1 << 18
"""Nodes of the automaton that are remembered while it is made, so that equal ones are shared: 10 MiB. Not measured."""

LONGEST_WALKED: Final = 256
"""Characters of a word up to which an automaton is walked for terms near to it: a row of the table of distances takes
eight bytes for each."""
