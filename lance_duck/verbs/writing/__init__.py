"""write_dataset: data becomes a table, or rows of one. It is written first (`staged`), and committed afterwards.

You hold: data, a location, a mode and `WriteArguments`. You get: a table at its new version, or fragments and a
transaction that another process commits.
Never here: casts of values (`write/casts`), data files (`write/files`), and changed rows.
"""
