"""Blocks ↔ Arrow arrays, without a copy where the form allows it; JSONB ↔ text.

You hold: a block, with flags of its nulls, and an Arrow type; or dictionaries of several arrays. You get: arrays of
just that type, dictionaries that go together.
Never here: buffers of a page and levels. Whether a column holds JSON is an argument of the caller.
"""
