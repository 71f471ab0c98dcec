"""The files that a manifest lists for a fragment: data files and their overlays.

You hold: messages of a manifest. You get: `DataFile` and `Overlay`, immutable. Never here: bytes of the files, and the
fragments that list them.
"""
