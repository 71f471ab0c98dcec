"""Training: the specification of an index, and centroids, bounds and codebooks from a sample of vectors.

You hold: parameters of a user, and vectors. You get: a checked `VectorSpec`, and a model that encodes vectors. The same
vectors give the same model.
Never here: which vectors are sampled, and from where (`verbs/indexes/training`).
"""
