"""Tables together with their write-ahead log (MemWAL): one view of the main table, its SSTables and its entries.

You hold: a version of the main table. You get: a `LogView`, a version in memory. It has the main table's fragments, and
new ones for SSTables and entries. Rows that the log deletes or replaces count as deleted rows in their fragments. All
reads therefore treat the view like any other version. `view` builds it: `sources` opens SSTables and entries, and
`keys` finds replaced rows.
Never here: the files of the log (`snapshot.shards`), and changes of any kind.
"""
