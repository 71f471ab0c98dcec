"""Inverted indexes: the documents of each term in a text column, with its frequencies and positions.

_indices/{uuid}/metadata.lance                                             see `layout`
_indices/{uuid}/part_{p}_{tokens,docs,invert}.lance    the files of partition p

You hold: batches of texts and rows, or open segments.
You get: the files of a segment, or, from an open segment, the documents of terms and their scores. `contents` holds a
whole decoded partition.
Never here: analysers (`text`), query trees and unindexed rows (`scan/text`), and segment coverage.
"""
