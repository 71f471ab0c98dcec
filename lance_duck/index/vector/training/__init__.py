"""Training: what kind of index is asked for, and centroids, bounds and codebooks of a sample of vectors."""
