"""Index segments: their catalog, their coverage, and the kinds of indexes.

You hold: a snapshot and a query on one column.
You get: an `Answer` with the rows that satisfy the query and the rows that may, as addresses in the fragments of the
segment's bitmap. The rows may include deleted ones, which scans skip. If the segment is corrupt, the search returns
None and issues one IndexWarning. Never here: predicates, commits, and scan threads.

See "Add an index kind" in CONTRIBUTING.md. All rooms have one floor plan:

    kind      the `IndexKind`: supported columns and queries
    layout    the bytes on disk, in its docstring; names of files, columns and metadata keys
    open      opens and checks the files of a segment; keeps small data in memory, reads rows on demand, cached
    search    the open segment: from queries to rows
    build     from rows to entries, within the memory limit
    merge     merges the entries of other segments, with current row addresses, into one stream or partition
    write     from entries to files
    costs     thresholds for speed and memory

A module may be a folder. Other modules are specific to a kind; `docs/decisions/index-kinds.md` lists them.
"""
