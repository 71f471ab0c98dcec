"""Inverted indexes: for each term of a text column, the documents that have it, how often, and where.

_indices/{uuid}/metadata.lance                                             see `layout`
_indices/{uuid}/part_{p}_{tokens,docs,invert}.lance    the files of partition p

The input is batches of texts and rows, or open segments. The output is the files of a segment, or, from an open one,
the documents and scores of terms. `contents` reads and writes a whole decoded partition. Analysers are in `text`, query
trees and unindexed rows in `scan/text`. Fragment coverage belongs elsewhere.
"""
