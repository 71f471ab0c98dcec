"""A plain JSONB encoder for all value types, independent of the package."""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

Member = tuple[int, bytes]
"""Kind of a member, and its bytes."""

FIELD: Final = pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})


def decimal(coefficient: int, scale: int, width: int, precision: int | None = None) -> Member:
    old = b"" if precision is None else bytes([precision])
    return 2, b"\x70" + coefficient.to_bytes(width, "big", signed=True) + old + bytes([scale])


def number(tag: int, data: bytes = b"") -> Member:
    return 2, bytes([tag]) + data


def extension(tag: int, data: bytes = b"") -> Member:
    return 6, bytes([tag]) + data


def date(days: int) -> Member:
    return extension(0x10, struct.pack(">i", days))


def timestamp(micros: int) -> Member:
    return extension(0x20, struct.pack(">q", micros))


def zoned(micros: int, seconds: int) -> Member:
    return extension(0x30, struct.pack(">qi", micros, seconds))


def old_zoned(micros: int, hours: int) -> Member:
    return extension(0x30, struct.pack(">qb", micros, hours))


def interval(months: int, days: int, micros: int) -> Member:
    return extension(0x40, struct.pack(">iiq", months, days, micros))


def text(value: str) -> Member:
    return 1, value.encode()


def array(members: list[Member]) -> Member:
    return 5, _container(0x8, [], members)


def document(members: dict[str, Member]) -> Member:
    return 5, _container(0x4, [text(key) for key in members], [*members.values()])


def value(member: Member) -> bytes:
    """The bytes of a whole value."""
    return member[1] if member[0] == 5 else _container(0x2, [], [member])


def _container(kind: int, keys: list[Member], members: list[Member]) -> bytes:
    parts = [*keys, *members]
    head = kind << 28 | (0 if kind == 2 else len(members))
    words = [head, *(kind << 28 | len(data) for kind, data in parts)]
    return struct.pack(f">{len(words)}I", *words) + b"".join(data for _, data in parts)


def table(values: list[bytes | None], **columns: pa.Array) -> pa.Table:
    """Values as a column j, after other columns."""
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    return pa.table([*columns.values(), pa.array(values, pa.large_binary())], schema=pa.schema([*fields, FIELD]))
