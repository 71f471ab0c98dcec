"""Index segments: their catalog, their coverage, and the kinds of indexes.

You hold: a snapshot and a query about one column. You get: an Answer, rows that satisfy it and rows that may, as
addresses in the fragments that the segment answers for; None when the segment is broken, with one IndexWarning.
A segment answers for the fragments of its own bitmap only. Its rows may include deleted ones, which the scan skips.
Never here: predicates, commits, and the threads of a scan.

A new kind of index is an `IndexKind` (`kind.py`) in a room, and a line in `registry.py`. All rooms have one floor plan:

    kind      the `IndexKind`: the columns that it indexes and the queries that it answers
    layout    the bytes on disk, in its docstring; names of files, columns and metadata keys
    open      the files of a segment, checked; small parts stay in memory, rows are read on demand and cached
    search    the open segment: from queries to rows
    build     from rows to entries, within the memory limit
    merge     entries of other segments, under new names of their rows, become one stream or partition
    write     from entries to files
    costs     thresholds of speed and memory

A module may be a folder. Other modules hold what only this kind has; `docs/decisions/index-kinds.md` lists them.
"""
