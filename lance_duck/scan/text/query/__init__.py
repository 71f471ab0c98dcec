"""What a full-text query asks: its tree, its words as an analyser gives them, the terms that these stand for.

You hold: words and options by pylance's names. You get: a tree, checked when it is made, and the words of its leaves.
Never here: tables, indexes, scores.
"""
