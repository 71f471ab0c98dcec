"""The files of a vector segment: index.idx and auxiliary.idx, their metadata, and vectors as codes."""
