"""merge_insert: matches a source with the table by key, writes its rows, and commits one Update.

You hold: a version, a source, keys and clauses. You get: one Update. Never here: how a scan finds rows. The steps of a
merge: `source` (read once, spilled if large) → `match` → `write` → a part (`builder`). If many processes merge, each
writes its own part (`parts`). `commit` combines the parts into one Update, under `guard`, which keeps two writers from
inserting the same key.
"""
