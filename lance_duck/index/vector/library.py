"""The import of faiss, the slowest of all: only modules that call faiss import this one."""

import warnings

# SWIG's types warn when they are created: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss

__all__ = ["faiss"]
