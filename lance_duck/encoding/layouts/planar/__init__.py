"""Page layouts of 2.3 files. Most correspond to a 2.2 layout. Sparse pages store the positions of nulls and lists.

You hold: the description of a 2.3 page. You get: the description of a 2.2 page with the same buffers, or the reader of
a page that 2.2 does not have.
Never here: the codecs of values, which 2.3 shares with 2.2 (`encoding/codecs`).
"""
