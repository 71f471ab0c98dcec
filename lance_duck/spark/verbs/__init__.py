"""Verbs of `lance_duck.spark`: planned on the driver, written by tasks, committed once.

You hold: a session and a table. You get: figures of the change. After a lost race the change is planned, or joined,
again.
Never here: writing a fragment or a segment, for which tasks call functions of `verbs` and `maintenance`.
"""
