"""merge_insert: matches a source with the table by key, writes the resulting rows, and commits one Update.

You hold: a version, a source, keys and clauses. You get: one Update. Never here: how a scan finds rows. `source` reads
the source once and spills it to disk if it is large. `match` finds matching rows, and `write` produces the rows to
write. `builder` runs these steps in one process. If many processes merge, each writes a part (`parts`). `commit`
combines the parts into one Update, under `guard`, which keeps two writers from inserting the same key.
"""
