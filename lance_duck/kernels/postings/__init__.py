"""Kernels of inverted indexes: tokens to postings, and postings of several partitions to those of one.

You hold: numbers of terms and documents, in numpy arrays. You get: postings sorted by term, in arrays of the caller.
Never here: Arrow, analysers, and what a score is.
"""
