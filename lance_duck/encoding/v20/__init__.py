"""Array encodings of 2.0 files: a page is a tree of arrays."""
