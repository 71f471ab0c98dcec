"""Kernels of vectors: distances by codes, codes and rotations of RaBitQ, halves of partitions, edges of graphs.

You hold: matrices of float32, and arrays for the results and for work. You get: the results, in arrays of the caller.
Never here: rows of a table, metrics, and exceptions: the caller has checked places and shapes.
"""
