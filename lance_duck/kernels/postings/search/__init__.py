"""Kernels that search compressed postings for the documents with the highest scores.

You hold: posting blocks of several terms, the blocks' bounds, document norms. You get: the best documents and their
scores. The kernels decode only blocks that may contain one of the best documents.
Never here: bytes of blocks, impacts, arithmetic of scores (`kernels.postings`).
"""
