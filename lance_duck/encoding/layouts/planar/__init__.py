"""Page layouts of 2.3 files: most are those of 2.2 in other words, and some store the places of nulls and lists.

You hold: the description of a page of a 2.3 file. You get: the description of a page of 2.2 whose buffers are the same,
or the reader of a page that 2.2 does not have.
Never here: the codecs of values, which are those of 2.2 (`encoding/codecs`).
"""
