"""Blocks ↔ Arrow arrays, without a copy if the types allow it; JSONB ↔ text.

You hold: a block with null flags and an Arrow type; or dictionaries of several arrays. You get: arrays of exactly that
type; combined dictionaries.
Never here: buffers of a page and levels. Callers decide whether a column contains JSON.
"""
