"""Upkeep: compaction, cleanup, validation.

You hold: a snapshot. You get: plans (pure: `plan`, `cleanup_plan`), rewritten fragments, remapped index segments
(`index_remap`), and lists of problems. Threads of this process write the groups of a compaction and commit them
together. Alternatively, other processes write them in batches, and each batch is committed separately. Only groups with
conflicts are then planned again.
Never here: new rows and values. A compaction only copies live rows.
"""
