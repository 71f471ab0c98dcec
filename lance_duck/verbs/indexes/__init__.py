"""Indexes are created, brought up to date, described and dropped, here or in many processes.

You hold: a column and the kind of its index. You get: segments, committed at once. `create` and `optimize` plan orders
(`segment_orders`), which this process carries out one after the other, or others do side by side. Segments of an
attempt that lost a race are committed by the next one while they hold (`staged_segments`). Where a new segment covers
rows of which older segments may hold entries, these are merged with it.
Never here: the bytes of an index, and searches.
"""
