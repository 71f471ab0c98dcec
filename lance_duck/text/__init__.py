"""Text analysers: they split texts into terms, for full-text indexes, queries and highlights.

You hold: parameters of an analyser, and Arrow texts. You get: `Tokens`, the terms of each text with their positions.
An analyser runs these steps: base tokenizer → length limit → lower case → stem → stop words → ASCII folding. Every step
after the first depends on a single token, so it runs only once for each distinct token.
Never here: indexes, files, scores.
"""
