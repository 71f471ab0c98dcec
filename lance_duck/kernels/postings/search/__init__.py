"""Kernels that search compressed postings for the documents with the greatest scores.

You hold: blocks of postings of several terms, the bounds of these blocks, norms of documents. You get: the best
documents and their scores; only blocks that may have one are decoded.
Never here: bytes of blocks, impacts, arithmetic of scores (`kernels.postings`).
"""
