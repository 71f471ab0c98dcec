"""Verbs of `lance_duck.spark`. The driver plans a change, tasks write the files, and the driver commits once.

You hold: a session and a table. You get: figures of the change. If another writer commits first, the change is planned,
or joined, again. Never here: writing a fragment or a segment (tasks call functions of `lance_duck.verbs` and
`maintenance`).
"""
