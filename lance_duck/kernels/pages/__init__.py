"""Kernels of page layouts: chunk headers, levels, full-zip entries, single values, LZ4 blocks."""
