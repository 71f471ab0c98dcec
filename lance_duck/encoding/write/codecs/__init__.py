"""Choice of the encodings of values: looks at the values, estimates sizes, picks one and runs it once.

You hold: a block and the options of its field. You get: compressed buffers with their description, of which the sizes
of chunks are known.
Never here: levels of nulls and lists but for their packing; thresholds, which stand in `encoding/write/costs`.
"""
