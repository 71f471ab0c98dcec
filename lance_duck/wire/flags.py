"""Feature flags: bits in a manifest for the features that a reader or writer must support.

bit | value | meaning                                bit | value | meaning
  0 |     1 | deletion files                           8 |   256 | data files of several versions
  1 |     2 | stable row ids                           9 |   512 | (not assigned)
  2 |     4 | 2.x data files                          10 |  1024 | tagged fragment reuse index
  3 |     8 | table config                            11 |  2048 | row lineage in data files
  4 |    16 | base paths                           12, 13 |       | (not assigned)
  5 |    32 | no transaction file                     14 | 16384 | managed blobs
  6 |    64 | data overlay files                      15 | 32768 | field ids are never reused
  7 |   128 | index segments that cover columns       16 | 65536 | zone write seeds

Bits 8, 10, 14 and 16 are set for both readers and writers, or for neither. Bit 15 is only set for writers, and only in
manifests that have `max_allocated_field_id`.
"""

from __future__ import annotations

from lance_duck.errors import CorruptError, UnsupportedError

DELETION_FILES = 1
STABLE_ROW_IDS = 2
VERSION_2_FILES = 4
TABLE_CONFIG = 8
BASE_PATHS = 16
OVERLAYS = 64
COVERED_INDICES = 128
MIXED_VERSIONS = 256
TAGGED_REUSE = 1024
SPILLED_ROW_LINEAGE = 2048
MANAGED_BLOBS = 16384
KEPT_FIELD_IDS = 32768
ZONE_WRITE_SEEDS = 65536

_PAIRED = MIXED_VERSIONS | TAGGED_REUSE | MANAGED_BLOBS | ZONE_WRITE_SEEDS
STICKY = STABLE_ROW_IDS | MIXED_VERSIONS | TAGGED_REUSE | SPILLED_ROW_LINEAGE | MANAGED_BLOBS | KEPT_FIELD_IDS
"""Flags that a table keeps permanently. The others follow from the contents of a version."""

_NAMES = {
    0: "deletion files",
    1: "stable row ids",
    2: "2.x data files",
    3: "table config",
    4: "base paths",
    5: "no transaction file",
    6: "data overlay files",
    7: "covered index metadata",
    8: "mixed data file versions",
    10: "tagged fragment reuse index",
    11: "spilled row lineage",
    14: "managed blobs",
    15: "field ids not used again",
    16: "zone write seeds",
}
_READABLE_BITS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 14)
READABLE = sum(1 << bit for bit in _READABLE_BITS)
WRITABLE = READABLE | KEPT_FIELD_IDS


def flag_names(flags: int) -> list[str]:
    """Return a description of each bit that is set, lowest first, for example "64 (data overlay files)"."""
    bits = (bit for bit in range(flags.bit_length()) if flags >> bit & 1)
    return [f"{1 << bit} ({_NAMES.get(bit, 'unknown')})" for bit in bits]


def check_consistent(reader: int, writer: int, *, keeps_field_ids: bool, where: str) -> None:
    """Reject a manifest whose reader and writer flags contradict each other or its fields.

    Args:
        reader: Flags for readers.
        writer: Flags for writers.
        keeps_field_ids: Whether the manifest has the highest field id ever assigned.
        where: The manifest, for messages.

    Raises:
        CorruptError: The flags are contradictory. The message names them.
    """
    if halves := (reader ^ writer) & _PAIRED:
        raise CorruptError(
            f"feature flags {', '.join(flag_names(halves))} are set for readers or writers only",
            where=where,
            expected="both or neither",
            found=f"readers {reader}, writers {writer}",
        )
    if reader & KEPT_FIELD_IDS or bool(writer & KEPT_FIELD_IDS) != keeps_field_ids:
        raise CorruptError(
            f"feature flag {', '.join(flag_names(KEPT_FIELD_IDS))} is set inconsistently",
            where=where,
            expected="set for writers alone, together with max_allocated_field_id",
            found=f"readers {reader}, writers {writer}, {'with' if keeps_field_ids else 'without'} that field",
        )


def check_readable(flags: int, where: str) -> None:
    """Reject a table with unsupported reader flags.

    Raises:
        UnsupportedError: A flag is not supported. The message contains the flag's number and name.
    """
    remedy = "upgrade lance_duck, or read an older version of the table"
    _check(flags & ~READABLE, "reader", where, remedy)


def check_writable(flags: int, where: str) -> None:
    """Reject changes to a table with unsupported writer flags.

    Raises:
        UnsupportedError: A flag is not supported. The message contains the flag's number and name.
    """
    _check(flags & ~WRITABLE, "writer", where, "upgrade lance_duck to change the table; reading still works")


def _check(unknown: int, who: str, where: str, remedy: str) -> None:
    if unknown:
        names = ", ".join(flag_names(unknown))
        raise UnsupportedError(f"{who} feature flags {names} are not supported", where=where, remedy=remedy)
