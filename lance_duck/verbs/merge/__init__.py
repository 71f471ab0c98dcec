"""merge_insert: the source is matched with the table by keys, its rows are written, and one Update is committed.

The way of a merge: `source` (read once, spilled when large) → `match` → `write` → `run` commits under `guard`, which
keeps two writers from inserting one key. `parts` does the same in many processes, and `commit` makes one version of it.
"""
