"""The metadata on disk: manifest, transaction, schema ↔ Arrow, flags, and all names of files (`paths`).

You hold: bytes. You get: immutable, validated messages. Unknown feature flags are rejected by name and number.
Never here: reads and writes of files, and the data of columns.
"""
