"""Files that a fragment names, as manifests have them: data files, and the overlays upon them.

You hold: messages of a manifest. You get: `DataFile` and `Overlay`, immutable. Never here: bytes of the files, and the
fragments that name them.
"""
