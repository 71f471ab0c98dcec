"""Kernels for inverted indexes: collect postings, encode and decode blocks, build and read term FSTs, search.

You hold: term numbers and document numbers, or blocks with their offsets. You get: sorted, encoded or decoded postings,
or scores, in the caller's arrays. `index.inverted.codecs` describes the layout of blocks.
Never here: Arrow, files, analysers.
"""
