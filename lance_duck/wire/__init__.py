"""The metadata on disk: manifest, transaction, schema, flags, paths."""
