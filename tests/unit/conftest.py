"""Handmade tables: only the parts that the metadata needs, as files by name."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lance_duck.wire.pb import file_pb2, table_pb2, transaction_pb2


def manifest_bytes(
    manifest: table_pb2.Manifest,
    transaction: transaction_pb2.Transaction | None = None,
    indices: table_pb2.IndexSection | None = None,
) -> bytes:
    """A manifest file with its sections in the order of today's writers."""
    manifest = table_pb2.Manifest.FromString(manifest.SerializeToString())
    data = b""
    if indices is not None:
        manifest.index_section = len(data)
        data += _section(indices)
    if transaction is not None:
        manifest.transaction_section = len(data)
        data += _section(transaction)
    return data + _section(manifest) + struct.pack("<QHH4s", len(data), 0, 2, b"LANC")


def _section(message: Any) -> bytes:
    body = message.SerializeToString()
    return struct.pack("<I", len(body)) + body


def data_file_bytes(num_rows: int) -> bytes:
    """A 2.2 file without columns."""
    descriptor = file_pb2.FileDescriptor(length=num_rows).SerializeToString()
    table = struct.pack("<QQ", 0, len(descriptor))
    end = len(descriptor)
    return descriptor + table + struct.pack("<QQQIIHH4s", end, end, end, 1, 0, 2, 2, b"LANC")


@dataclass
class HandMade:
    """Files of a table by path, with the manifests of its versions."""

    files: dict[str, bytes] = field(default_factory=dict)

    def commit(self, version: int, *, naming: int = 2, seconds: int | None = None, **parts: Any) -> table_pb2.Manifest:
        """Add the manifest of a version; `parts` are fields of it, and `transaction` and `indices`."""
        transaction, indices = parts.pop("transaction", None), parts.pop("indices", None)
        manifest = table_pb2.Manifest(version=version, **parts)
        manifest.timestamp.seconds = 1_700_000_000 + version if seconds is None else seconds
        if not manifest.fields:
            manifest.fields.add(name="a", id=0, parent_id=-1, logical_type="int32", nullable=True)
        name = f"{2**64 - 1 - version:020d}" if naming == 2 else f"{version}"
        self.files[f"_versions/{name}.manifest"] = manifest_bytes(manifest, transaction, indices)
        return manifest

    def add_json(self, path: str, content: Mapping[str, Any]) -> None:
        """Add a JSON file."""
        self.files[path] = json.dumps(content).encode()

    def write(self, root: Path) -> str:
        """Write the files below a directory, and return it."""
        for path, data in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return str(root)


@pytest.fixture
def hand_made() -> Callable[[], HandMade]:
    return HandMade


@pytest.fixture
def make_data_file() -> Callable[[int], bytes]:
    return data_file_bytes


@pytest.fixture
def make_manifest() -> Callable[..., bytes]:
    return manifest_bytes
