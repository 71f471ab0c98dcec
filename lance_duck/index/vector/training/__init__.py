"""Training: the index specification, and centroids, bounds and codebooks from a sample of vectors.

You hold: a user's parameters, and vectors. You get: a checked `VectorSpec`, and a model that encodes vectors. The same
vectors give the same model.
Never here: the choice of the vectors to train with (`verbs/indexes/training`).
"""
