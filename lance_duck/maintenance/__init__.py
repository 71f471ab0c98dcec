"""Upkeep: compaction, cleanup, validation.

You hold: a snapshot. You get: plans (pure: `plan`, `cleanup_plan`), rewritten fragments, index segments that follow
them (`index_remap`), and problems by name. A group of a compaction is written by any process: by threads of this one
all are committed at once, by others batch by batch, and then a group that another writer got in the way of is planned
anew.
Never here: new rows and values; a compaction writes the living rows as they are.
"""
