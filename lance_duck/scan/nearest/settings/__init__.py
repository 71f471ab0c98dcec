"""Settings of searches through vector segments that reach a recall: measured, not guessed.

You hold: an open segment, the rows that it covers, k, and the share of these rows that may be found. You get: the
cheapest settings that reach a recall, with the recall that was measured, and on how many queries.
Never here: explicit settings, merging of segments, and rows that no segment covers.
`compared_queries` draws rows, displaces them if the segment has graphs (`displaced`), and compares them with others →
`sample` derives queries and true neighbours → `measure` counts the neighbours that each setting finds → `curve` chooses
a setting → `segment_curves` keeps the curve while the segment is open, for all versions of the table.
Curves measured during the index build are read from a file next to it: `stored`.
"""
