"""Metadata on disk: manifests, transactions, schemas and their Arrow schemas, flags, and all file names (`paths`).

You hold: bytes. You get: immutable, validated messages. Unsupported feature flags are rejected by name and number.
Never here: reads and writes of files, and the data of columns.
"""
