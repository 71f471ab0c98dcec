"""The changes of a table, with one module per verb. LanceDataset inherits its methods from here.

You hold: the handle of a dataset (`handle.py`). You get: row counts. The handle moves to the committed version. A verb
finds rows through `scan`, writes files through `write`, and commits an operation through `commit`. After a lost race it
runs again on the newest version. Written files that were not committed are deleted. Changed rows are deleted and
rewritten. For all other rows, only the columns of the condition are read.
To add a verb, add a module to the package of its subject, and a method to `row_methods`, `columns/methods`,
`indexes/methods` or `versions`.
Never here: manifest bytes, transaction conflicts, scan threads.
"""
