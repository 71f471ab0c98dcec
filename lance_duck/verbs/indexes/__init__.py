"""Indexes: created, optimized, described and dropped, by this process or by many.

You hold: a column and the kind of its index. You get: segments, committed together. `create` and `optimize` plan orders
(`segment_orders`), which this process carries out one after the other, or other processes in parallel. Segments of an
attempt that lost a race are committed by the next attempt if they are still valid (`staged_segments`). Older segments
that may hold entries of rows that a new segment covers are merged with it.
Never here: the bytes of an index, and searches.
"""
