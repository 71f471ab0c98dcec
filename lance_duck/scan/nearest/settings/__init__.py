"""Search settings of vector segments that reach a recall. They are measured, not guessed.

You hold: an open segment, its covered rows, k, and the share of these rows to search. You get: the cheapest settings
that reach a recall, with the measured recall and the number of queries.
Never here: explicit settings, merging of segments, and rows that no segment covers.
`compared_queries` draws rows, displaces them if the segment has graphs (`displaced`), and compares them with others →
`sample` derives queries and true neighbours → `measure` counts the neighbours that each setting finds → `curve` chooses
a setting → `segment_curves` keeps the curve while the segment is open, for all versions of the table.
Curves measured during the index build are read from a file next to it: `stored`.
"""
