"""Text analysers: they split texts into terms, for full-text indexes, queries and highlights.

You hold: parameters of an analyser, and Arrow texts. You get: `Tokens`, the terms of each text with their positions.
An analyser is base tokenizer → length limit → lower case → stem → stop words → ASCII folding; every step after the
first is a function of one token, so it runs once for each distinct one.
Never here: indexes, files, scores.
"""
