"""Upkeep: compaction, cleanup, validation.

You hold: a snapshot. You get: plans (pure: `plan`, `cleanup_plan`), rewritten fragments, index segments remapped to
them (`index_remap`), and problems by name. Groups of a compaction are written by threads of this process and committed
together, or by other processes and committed batch by batch; then groups with conflicts are planned anew.
Never here: new rows and values. A compaction only copies living rows.
"""
