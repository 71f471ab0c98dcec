"""Executes plans: threads read row ranges, and rows that indexes chose. Batches are yielded in order.

You hold: a ScanPlan, or positions, addresses or row ids. You get: Arrow batches in order, or one table. `row_access`
decides how the rows of a fragment are read, with thresholds from `scan/costs`. `fragment_reader` reads rows of one
fragment by physical offset, and `take` reads rows by position, address or row id. Never here: the meaning of filters.
"""
