"""Kernels that split text into tokens and number the distinct words.

You hold: UTF-8 with its offsets, and arrays for the results. You get: each token's word number, and the first
occurrence of each word. If an array is full, the kernel returns early and can continue with a larger array.
Never here: Arrow, languages, and the further processing of words.
"""
