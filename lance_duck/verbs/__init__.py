"""Changes of a table, by verb; LanceDataset inherits its methods from here.

You hold: the handle of a dataset (`handle.py`). You get: the handle moved to the version that the verb
committed, and counts. A verb finds rows through `scan`, writes files through `write`, and commits an operation through
`commit`; after a lost race it runs again on the newest version. Files that it wrote and did not commit are
deleted. Rows that change are deleted and rewritten; of other rows only the columns that decide are read.
A new verb is a module in the room of its subject, and a method in `row_methods`, `columns/methods`, `indexes/methods`
or `versions`.
Never here: bytes of manifests, conflicts of transactions, threads of a scan.
"""
