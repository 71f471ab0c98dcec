"""Full-text queries: their trees, the words that an analyser extracts, and the terms that words expand to.

You hold: words and options by pylance's names. You get: a validated tree, and the words of its leaves. Never here:
tables, indexes, scores.
"""
