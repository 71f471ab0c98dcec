"""What `lance_duck.spark` does to tables: planned on the driver, written by tasks, committed once.

You hold: a session and a table. You get: figures of what was done. A lost race plans, or joins, again.
Never here: how a fragment or a segment is written: tasks call the parts of `verbs` and `maintenance`.
"""
