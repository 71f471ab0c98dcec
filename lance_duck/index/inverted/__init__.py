"""Inverted indexes: for each term of a text column, its documents, frequencies and positions.

_indices/{uuid}/metadata.lance                                             see `layout`
_indices/{uuid}/part_{p}_{tokens,docs,invert}.lance    the files of partition p

You hold: batches of texts and rows, or open segments.
You get: the files of a segment, or, from an open segment, the documents and scores of terms. `contents` reads and
writes a whole decoded partition.
Never here: analysers (`text`), query trees and unindexed rows (`scan/text`), and segment coverage.
"""
