"""JSON as documents of full text.

You hold: JSON as texts, or a query for it. You get: tokens, one for each leaf, of texts one for each of their terms.
Never here: how a column stores JSON (`encoding`), how texts are cut and filtered.
"""
