"""write_dataset: data becomes a table, or rows of one; it is written first (`staged`), and committed afterwards.

You hold: data, a place, a mode and `WriteArguments`. You get: a table at its new version, or fragments and a
transaction that another process commits.
Never here: casts of values (`write/casts`), data files (`write/files`), and rows that change.
"""
