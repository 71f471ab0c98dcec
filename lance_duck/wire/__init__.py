"""The metadata on disk: manifest, transaction, schema ↔ Arrow, flags, and all names of files (`paths`).

You hold: bytes. You get: immutable messages, checked; unknown feature flags are refused by name and number.
Never here: reads and writes of files, and the data of columns.
"""
