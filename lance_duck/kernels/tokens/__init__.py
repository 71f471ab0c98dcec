"""Kernels that cut texts into tokens and number the distinct ones.

You hold: UTF-8 with its offsets, and arrays for the results. You get: the number of each token's word, and the first
occurrence of each word. Where an array is full, a kernel says so, and continues in a larger one.
Never here: Arrow, languages, and what becomes of a word.
"""
