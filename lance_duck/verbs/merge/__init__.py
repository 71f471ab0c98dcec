"""merge_insert: a source is matched with the table by keys, its rows are written, and one Update is committed.

You hold: a version, a source, keys and clauses. You get: one Update. Never here: how a scan finds rows.
The path of a merge: `source` (read once, spilled if large) → `match` → `write` → a part (`builder`). If many processes
merge, each writes a part of its own (`parts`). `commit` makes one Update of the parts, one or many, under `guard`,
which keeps two writers from inserting one key.
"""
