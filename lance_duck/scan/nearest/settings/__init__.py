"""Search settings of vector segments that reach a recall. They are measured, not guessed.

You hold: an open segment, its covered rows, k, and the share of these rows to search. You get: the cheapest settings
that reach a recall, with the measured recall and the number of queries.
Never here: explicit settings, merging of segments, and rows that no segment covers.
The steps: `compared_queries` draws query rows, displaces them if the segment has graphs (`displaced`), and compares
them with other rows. `sample` derives the true neighbours. `measure` counts the neighbours that each setting finds.
`curve` chooses a setting. `segment_curves` caches the curve while the segment is open, for all versions of the table.
If curves were measured during the index build, `stored` reads them from a file of the index.
"""
