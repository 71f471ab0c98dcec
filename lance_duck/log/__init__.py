"""Tables together with their write-ahead log (MemWAL): one view of the main table, its SSTables and its entries.

You hold: a version of the main table. You get: a `LogView`, a version in memory whose fragments are those of the main
table, of the SSTables and of the entries. Rows that a newer row with the same key replaces, and deleted rows, count as
deleted rows of their fragments. All reads therefore treat the view like any other version. `view` builds it: `sources`
opens SSTables and entries, and `keys` finds replaced rows.
Never here: the files of the log (`snapshot.shards`), and changes of any kind.
"""
