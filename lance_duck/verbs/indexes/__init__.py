"""Indexes: created, optimized, described and dropped, by this process or by many.

You hold: a column and an index kind. You get: segments, committed together. `create` and `optimize` plan orders
(`segment_orders`). This process executes them one after the other, or other processes execute them in parallel. After a
lost race, the next attempt commits segments that are still valid (`staged_segments`). Older segments that may hold
entries for rows of a new segment are merged with it.
Never here: index file formats and searches.
"""
