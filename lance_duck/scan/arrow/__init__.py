"""pyarrow expressions as filters. Indexes reduce the rows, and pyarrow evaluates the expression on the remaining rows.

You hold: a pyarrow expression. You get: a filter that pyarrow evaluates (`filter`), and the predicate that the
expression implies, for index searches (`implied`). For pyarrow's C++ readers, you get a table as IPC files
(`ipc_dataset`).
Never here: SQL text, and reads of a table.
"""
