"""Encoding options of a field, from its metadata and the file version.

key                                           | value
lance-encoding:compression                    | none, zstd, lz4, fsst
lance-encoding:compression-level              | integer
lance-encoding:rle-threshold                  | run-length encoding applies below this number of runs per value
lance-encoding:bss                            | off, on, auto: byte stream split before general compression
lance-encoding:dict-divisor                   | minimum number of values per distinct value; 2 by default
lance-encoding:dict-size-ratio                | maximum dictionary size, as a share of the plain size; 0.8 by default
lance-encoding:dict-values-compression        | compression of the dictionary: none, zstd, or lz4 (default)
lance-encoding:dict-values-compression-level  | integer
lance-encoding:structural-encoding            | miniblock, fullzip
lance-encoding:packed                         | true: a struct is stored row by row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from lance_duck.encoding.write.grammar import GRAMMARS, Grammar

PREFIX: Final = "lance-encoding:"
CHUNK_BYTES: Final = 4096
NO_TEXT: Final = frozenset({"binary", "large_binary", "json"})
"""Variable-width logical types whose values are not texts."""


@dataclass(frozen=True, slots=True)
class EncodingOptions:
    """Options for the compression of a field's values.

    Attributes:
        version: "2.1" or "2.2".
        compression: "none", "zstd", "lz4" or "fsst". None leaves the choice to the writer.
        level: Compression level, or None for the default.
        rle_threshold: Maximum number of runs per value for run-length encoding. None uses runs whenever they are
            clearly smaller.
        bss: "off", "on" or "auto".
        dict_divisor: Minimum number of values per distinct value, or None for the default.
        dict_size_ratio: Maximum size of a dictionary, as a share of the plain size.
        dict_compression: Compression of the dictionary: "none", "zstd" or "lz4". None leaves the choice to the writer.
        dict_level: Level of the dictionary's compression.
        structural: "miniblock" or "fullzip"; None leaves the choice to the writer.
        packed: Whether a struct is stored row by row.
        is_text: Whether variable-width values are texts. Only texts are tried with FSST.
    """

    version: str = "2.2"
    compression: str | None = None
    level: int | None = None
    rle_threshold: float | None = None
    bss: str = "auto"
    dict_divisor: int | None = None
    dict_size_ratio: float = 0.8
    dict_compression: str | None = None
    dict_level: int | None = None
    structural: str | None = None
    packed: bool = False
    is_text: bool = True

    @classmethod
    def from_metadata(
        cls, metadata: Mapping[str, str], version: str = "2.2", logical_type: str | None = None
    ) -> EncodingOptions:
        """Return the options from a field's metadata and type. Invalid keys and numbers are ignored."""
        if not metadata:
            return _unasked(version, logical_type not in NO_TEXT)

        def text(key: str) -> str | None:
            value = metadata.get(PREFIX + key)
            return None if value is None else value.strip().lower()

        return cls(
            version=version,
            compression=text("compression"),
            level=_integer(text("compression-level")),
            rle_threshold=_ratio(text("rle-threshold")),
            bss=text("bss") or "auto",
            dict_divisor=_integer(text("dict-divisor")),
            dict_size_ratio=_ratio(text("dict-size-ratio")) or 0.8,
            dict_compression=text("dict-values-compression"),
            dict_level=_integer(text("dict-values-compression-level")),
            structural=text("structural-encoding"),
            is_text=logical_type not in NO_TEXT,
            packed=text("packed") == "true" or metadata.get("packed", "").strip().lower() == "true",
        )

    @property
    def is_open(self) -> bool:
        """Whether the field leaves the form of its values to the writer."""
        return self.compression is None and self.structural is None

    @property
    def grammar(self) -> Grammar:
        """Grammar of the file version."""
        return GRAMMARS[self.version]

    @property
    def chunk_bytes(self) -> int:
        """Target size of a chunk, in bytes. Larger with general compression, because each chunk adds overhead."""
        return 4 * CHUNK_BYTES if self.grammar.has_large_chunks and self.compression in ("zstd", "lz4") else CHUNK_BYTES


@cache
def _unasked(version: str, is_text: bool) -> EncodingOptions:
    """Return the options of a field without encoding metadata."""
    return EncodingOptions(version=version, is_text=is_text)


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _ratio(text: str | None) -> float | None:
    try:
        ratio = None if text is None else float(text)
    except ValueError:
        return None
    return ratio if ratio is not None and 0 <= ratio <= 1 else None
