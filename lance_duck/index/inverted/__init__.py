"""Inverted indexes: for each term of a text column, the documents that have it, how often, and where.

_indices/{uuid}/metadata.lance                                             see `layout`
_indices/{uuid}/part_{p}_{tokens,docs,invert}.lance    one partition each

You hold: batches of texts and rows, or open segments. You get: the files of a segment, and of an open one the documents
and scores of terms. A partition is read and written through `contents`: all of it, decoded.
Never here: analysers (`text`), trees of queries and rows without an index (`scan/text`), which fragments a segment
answers for.
"""
