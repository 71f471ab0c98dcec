"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss.

One kind, VECTOR, for all of them. faiss is used here alone, and gets arrays only. `build` makes a segment of rows,
`merge` of other segments, `search` answers queries by position, `metric.distances` is the plain reference.
"""

import warnings

# Types that SWIG made warn when they are made: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss  # noqa: F401
