"""Settings of searches through vector segments that reach a recall: measured, not guessed.

You hold: an open segment, the rows that it covers, k, and the share of these rows that may be found. You get: the
cheapest settings that reach a recall, with the recall that was measured, and on how many queries.
Never here: explicit settings, merging of segments, and rows that no segment covers.
`compared_queries` draws rows, displaces them where there are graphs (`displaced`), and compares them with others →
`sample` makes queries and true neighbours of them → `measure` counts the neighbours that each setting finds → `curve`
chooses → `segment_curves` remembers the curve for as long as the segment is open, whichever version of the table asks.
Curves that were measured when an index was built are read from a file beside it: `stored`.
"""
