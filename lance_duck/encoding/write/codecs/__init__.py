"""Choice of value encodings by estimated size. Only the chosen encoding is run.

You hold: a block and the options of its field. You get: compressed buffers with their description and the sizes of
their chunks.
Never here: levels of nulls and lists, except for their packing; thresholds, which are in `encoding/write/costs`.
"""
