"""Blobs of chosen rows: as files that are read lazily, as bytes, or as they are written again."""
