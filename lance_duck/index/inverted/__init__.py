"""Inverted indexes: for each term of a text column, the documents that have it, how often, and where.

_indices/{uuid}/metadata.lance                                             see `layout`
_indices/{uuid}/part_{p}_{tokens,docs,invert}.lance    the files of partition p

You hold: batches of texts and rows, or open segments. You get: the files of a segment; from an open one the documents
and scores of terms. A whole partition, decoded, is read and written as `contents`.
Never here: analysers (`text`), trees of queries and rows without an index (`scan/text`), the fragments that a segment
answers for.
"""
