"""Choice of value encodings by estimated size. Only the chosen encoding is run.

You hold: a block and the options of its field. You get: compressed buffers with their description and the sizes of
their chunks.
Never here: the levels of nulls and lists, except for their compression; thresholds (`encoding/write/costs`).
"""
