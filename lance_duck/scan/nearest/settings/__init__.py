"""Settings of searches through vector segments that reach a recall: measured, not guessed.

You hold: an open segment, the rows that it covers, k, and the share of these rows that may be found. You get: the
cheapest settings that reach a recall, with the recall that was measured, and on how many queries.
Never here: what a caller asked for, merging of segments, and the rows that none covers.
`compared_queries` draws rows and compares them with others → `sample` has queries and true neighbours of that →
`measure` sees which neighbours each setting finds → `curve` chooses → `kept` remembers the curve for as long as the
segment is open, whichever version of the table asks. Curves that were measured when an index was built come out of a
file beside it: `stored`.
"""
