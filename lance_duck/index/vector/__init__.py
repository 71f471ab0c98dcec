"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss."""

import warnings

# Types that SWIG made warn when they are made: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss  # noqa: F401
