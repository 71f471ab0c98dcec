"""Every change of a table, by its verb; LanceDataset takes its methods from here.

You hold: the handle of a dataset (`handle.py`). You get: the handle moved to the version that the verb
committed, and counts. A verb finds rows through `scan`, writes files through `write`, and commits an operation through
`commit`; when it lost a race, it runs again on the newest version. What it wrote and did not commit is deleted.
Rows that change are deleted and rewritten; nothing but what is needed is read of the others.
A new verb is a module in the room of its subject, and a method in `row_methods`, `columns/methods`, `indexes/methods`
or `versions`.
Never here: bytes of manifests, conflicts of transactions, threads of a scan.
"""
