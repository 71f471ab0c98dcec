"""Kernels of inverted indexes: tokens to postings, postings to blocks and back, the automaton of the terms, search.

You hold: numbers of terms and documents, or bytes of blocks with their offsets. You get: the same, sorted by term,
encoded, decoded or scored, in arrays of the caller. `index.inverted.codecs` has the layout of blocks.
Never here: Arrow, files, analysers.
"""
