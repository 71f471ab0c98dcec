"""Data files out: columns, container, blobs beside them."""
