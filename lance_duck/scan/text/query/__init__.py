"""Full-text queries: their trees, their words by an analyser, and the terms that these stand for.

You hold: words and options by pylance's names. You get: a tree, checked when it is made, and the words of its leaves.
Never here: tables, indexes, scores.
"""
