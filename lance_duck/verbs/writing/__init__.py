"""write_dataset: data becomes a table, or rows of one. It is written first (`staged`), and committed afterwards.

Input: data, a location, a mode and `WriteArguments`. Output: a table at its new version, or fragments and a transaction
that another process commits.
Not here: casts of values (`write/casts`), data files (`write/files`), and changed rows.
"""
