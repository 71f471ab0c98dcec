"""Index segments: their catalog, their coverage, and the kinds of indexes.

You hold: a snapshot and a query about one column. You get: an Answer, rows that satisfy it and rows that may, as
addresses in the fragments that the segment answers for; None when the segment is broken, with one IndexWarning.
A new kind of index is a room, or a module, with an `IndexKind` (`kind.py`), and a line in `registry.py`.
A segment answers for the fragments of its own bitmap only. Its rows may include deleted ones, which the scan skips.
Never here: predicates, commits, and the threads of a scan.
"""
