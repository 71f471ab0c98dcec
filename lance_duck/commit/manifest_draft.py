"""A version under construction: its manifest and its index segments, as messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_duck.wire.manifest import stored_fragments
from lance_duck.wire.pb import table_pb2


@dataclass
class ManifestDraft:
    """The manifest and the index segments of a version, as messages.

    Attributes:
        manifest: The manifest.
        segments: The index segments.
        fragment_bytes: Parts of all stored fragments, if the manifest only contains the first one. Otherwise None.
    """

    manifest: table_pb2.Manifest
    segments: list[table_pb2.IndexMetadata]
    fragment_bytes: tuple[bytes | memoryview, ...] | None = None

    def copied(self) -> ManifestDraft:
        """Return a mutable copy."""
        return ManifestDraft(copy_of(self.manifest), [copy_of(s) for s in self.segments], self.fragment_bytes)

    def move_added(self) -> None:
        """Move new fragments from the manifest to `fragment_bytes`."""
        if self.fragment_bytes is not None:
            self.fragment_bytes += (stored_fragments(self.manifest.fragments[1:]),)
            del self.manifest.fragments[1:]


def copy_of(message: Any) -> Any:
    """Return a copy of a message."""
    copied = type(message)()
    copied.CopyFrom(message)
    return copied
