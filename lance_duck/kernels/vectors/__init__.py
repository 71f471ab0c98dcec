"""Kernels for vectors: distances to encoded vectors, RaBitQ codes and rotations, partition splits, graph edges.

You hold: float32 matrices, and arrays for results and scratch space. You get: the results in the caller's arrays.
Never here: rows of a table, metrics, and exceptions: the caller has checked indices and shapes.
"""
