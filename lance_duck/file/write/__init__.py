"""Data files out: columns, container, blobs beside them; the mirror of reading."""
