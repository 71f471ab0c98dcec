"""write_dataset: writes data to a new or an existing table. Rows are written first (`staged`) and committed afterwards.

You hold: data, a location, a mode and `WriteArguments`. You get: a table at its new version, or fragments and a
transaction that another process commits.
Never here: casts of values (`write/casts`), data files (`write/files`), and changed rows.
"""
