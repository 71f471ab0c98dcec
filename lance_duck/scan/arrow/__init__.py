"""pyarrow expressions as filters: parsed from their pickled form, evaluated by pyarrow, accelerated by indexes.

You hold: a pyarrow expression. You get: a filter that pyarrow itself evaluates (`filter`), and the predicate that it
implies, for indexes (`implied`). For pyarrow's own readers, a table as IPC files (`ipc_dataset`).
Never here: SQL text, and reads of a table.
"""
