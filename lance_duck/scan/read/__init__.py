"""A plan carried out: ranges of rows and rows that indexes chose, in threads, batches in order, an early end.

`fragment_reader` gives rows of one fragment by physical offset, `take` rows by position, address or row id.
"""
