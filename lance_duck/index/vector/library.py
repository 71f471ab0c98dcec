"""faiss, imported by those modules alone that call it: it is the slowest import of all."""

import warnings

# Types that SWIG made warn when they are made: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss

__all__ = ["faiss"]
