"""Choice of the encodings of values, by estimates of their sizes; the chosen encoding is run once.

You hold: a block and the options of its field. You get: compressed buffers with their description and the sizes of
their chunks.
Never here: levels of nulls and lists, except for their packing; thresholds, which are in `encoding/write/costs`.
"""
