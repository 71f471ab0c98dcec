"""Options for writing blobs: where to store them, and how to treat external files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from lance_duck.errors import InvalidInputError
from lance_duck.store import ByteSource, local_path, open_source

INLINE_BYTES: Final = 64 << 10
PACKED_BYTES: Final = 4 << 20
PACK_FILE_BYTES: Final = 1 << 30

INLINE_KEY: Final = "lance-encoding:blob-inline-size-threshold"
DEDICATED_KEY: Final = "lance-encoding:blob-dedicated-size-threshold"
PACK_FILE_KEY: Final = "lance-encoding:blob-pack-file-size-threshold"

MODES: Final = ("reference", "ingest")

_URI: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://?.")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Size limits that determine where a `lance.blob.v2` is stored.

    Attributes:
        inline: Maximum size of a blob in the data file, in bytes.
        packed: Maximum size of a blob that shares a sidecar, in bytes. Larger blobs get separate sidecars.
        pack_file: Maximum size of a shared sidecar, in bytes. A blob that would exceed this size begins a new sidecar.
    """

    inline: int = INLINE_BYTES
    packed: int = PACKED_BYTES
    pack_file: int = PACK_FILE_BYTES

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], pack_file: int | None = None) -> Thresholds:
        """Return the thresholds from a field's metadata.

        Args:
            metadata: Metadata of the field.
            pack_file: Maximum size of a shared sidecar, in bytes, unless the metadata sets it.

        Raises:
            InvalidInputError: A threshold is not a number, or too small.
        """
        default = cls(pack_file=PACK_FILE_BYTES if pack_file is None else pack_file)
        return cls(
            _threshold(metadata, INLINE_KEY, default.inline, 0),
            _threshold(metadata, DEDICATED_KEY, default.packed, 1),
            _threshold(metadata, PACK_FILE_KEY, default.pack_file, 1),
        )


@dataclass(frozen=True)
class BlobOptions:
    """Blob options of a write.

    Attributes:
        external_mode: "reference" keeps the URI of an external file, "ingest" copies its bytes.
        allow_outside_bases: Whether references may point to any URI. If False, they must point below one of the bases.
        bases: Base paths of the table that are not roots of tables, by id.
        pack_file_bytes: Maximum size of a shared sidecar, in bytes, or None for the default.
        open: Opens an external file.
    """

    external_mode: str = "reference"
    allow_outside_bases: bool = False
    bases: Mapping[int, str] = field(default_factory=dict)
    pack_file_bytes: int | None = None
    open: Callable[[str], ByteSource] = open_source

    def __post_init__(self) -> None:
        if self.external_mode not in MODES:
            raise InvalidInputError("external_blob_mode", expected=" or ".join(MODES), found=repr(self.external_mode))
        if self.external_mode == "ingest" and self.allow_outside_bases:
            raise InvalidInputError(
                "allow_external_blob_outside_bases cannot be combined with external_blob_mode='ingest'",
                remedy="leave one of them out: bytes that are copied refer to nothing",
            )
        size = self.pack_file_bytes
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InvalidInputError("blob_pack_file_size_threshold", expected="a whole number >= 1", found=repr(size))

    def with_references(self) -> BlobOptions:
        """Return options that keep references in existing data, regardless of their targets."""
        return replace(self, external_mode="reference", allow_outside_bases=True)

    def place(self, uri: str, where: str) -> tuple[int, str]:
        """Return the id of the base path that contains a file, and the name below it.

        Returns (0, URI) if no base path contains the file.

        Raises:
            InvalidInputError: The file is outside all base paths and the options forbid this, or the URI is not
                absolute.
        """
        below = [(base_id, name) for base_id, base in self.bases.items() if (name := _below(uri, base)) is not None]
        if below:
            return min(below, key=lambda base: len(base[1]))
        if not self.allow_outside_bases:
            raise InvalidInputError(
                "an external blob is outside the base paths of the table",
                where=where,
                expected="a file below a base path that is not the root of a table",
                found=repr(uri),
                remedy="add its folder as a base path, or write with allow_external_blob_outside_bases=True",
            )
        if not _URI.match(uri):
            raise InvalidInputError(
                "the URI of an external blob is not absolute", where=where, expected="an absolute URI", found=repr(uri)
            )
        return 0, uri


def _below(uri: str, base: str) -> str | None:
    """Return the name of a file below a base path, or None if the file is not below the base path."""
    file_path, base_path = local_path(uri), local_path(base)
    if (file_path is None) != (base_path is None):
        return None
    whole, prefix = (uri, base) if file_path is None or base_path is None else (file_path, base_path)
    prefix = prefix.rstrip("/") + "/"
    name = whole[len(prefix) :]
    inside = whole.startswith(prefix) and name and ".." not in name.split("/")
    return name if inside else None


def _threshold(metadata: Mapping[str, str], key: str, default: int, least: int) -> int:
    text = metadata.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise InvalidInputError(f"field metadata {key}", expected=f"a whole number >= {least}", found=repr(text))
    return int(text)
