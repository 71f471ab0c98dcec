"""HNSW graphs: built, walked over, cut, and as rows of Lance's files."""
