"""Random structural damage: messages are decoded, changed in several fields, and encoded again.

The result can usually be parsed: sizes, offsets, numbers, types and references are wrong instead of single bits.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

from corruption.containers import read_manifest
from corruption.messages import BYTES, INTEGERS, TEXTS
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from lance_duck.wire.pb import (
    encodings20_pb2,
    encodings21_pb2,
    encodings23_pb2,
    file2_pb2,
    file_pb2,
    index_pb2,
    rowids_pb2,
    table_pb2,
    transaction_pb2,
)

DEEPEST = 60
TURNS = 20  # more turns, in case the first changes had no effect
WORDS = (0, 1, 2, 63, 64, 65, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
NUMBERS: tuple[Any, ...] = (0, -1, 1, 7, 1 << 31, 1 << 40, 1 << 63, 1 << 70, 0.5, 1e300, "3", None, [], {}, True)
# Field of bytes -> the message that they are.
INNER: dict[str, type[Message]] = {
    "row_id_sequence.inline_row_ids": rowids_pb2.RowIdSequence,
    "inline_row_ids": rowids_pb2.RowIdSequence,
    "inline_created_at_versions": rowids_pb2.RowDatasetVersionSequence,
    "inline_last_updated_at_versions": rowids_pb2.RowDatasetVersionSequence,
}
ENCODINGS: dict[str, type[Message]] = {
    "ArrayEncoding": encodings20_pb2.ArrayEncoding,
    "ColumnEncoding": encodings20_pb2.ColumnEncoding,
    "PageLayout": encodings21_pb2.PageLayout,
    "PlanarLayout": encodings23_pb2.PlanarLayout,
    "VectorIndexDetails": index_pb2.VectorIndexDetails,
    "InvertedIndexDetails": index_pb2.InvertedIndexDetails,
    "ZoneMapIndexDetails": index_pb2.ZoneMapIndexDetails,
    "FragmentReuseIndexDetails": index_pb2.FragmentReuseIndexDetails,
}


def changed_message(rng: random.Random, message: Message) -> Message:
    """Return a copy with one to four random changes at any depth, including messages nested in bytes fields."""
    copy = _copy(message)
    least = rng.choice((1, 1, 2, 4))
    for turn in range(least + TURNS):
        if turn >= least and copy != message:
            break
        nodes = list(_nodes(copy))
        try:
            _change(rng, *rng.choice(nodes), nodes)
        except (ValueError, TypeError, OverflowError):
            continue  # the value does not fit the type of the field
    return copy


def _nodes(message: Message, depth: int = 0) -> Iterator[tuple[Message, Callable[[], None]]]:
    """Yield all messages, each with a function that writes a message nested in bytes back."""
    yield message, lambda: None
    if depth == DEEPEST:
        return
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE and not _is_map(field):
            for item in value if field.is_repeated else [value]:
                yield from _nodes(item, depth + 1)
        elif field.type == FieldDescriptor.TYPE_BYTES and not field.is_repeated:
            yield from _inner_nodes(message, field, value)


def _inner_nodes(
    message: Message, field: FieldDescriptor, value: bytes
) -> Iterator[tuple[Message, Callable[[], None]]]:
    try:
        if isinstance(message, AnyMessage):
            kind = ENCODINGS.get(message.type_url.rpartition(".")[2])
        elif isinstance(message, file2_pb2.DirectEncoding):
            kind = AnyMessage
        else:
            kind = INNER.get(field.name)
        inner = kind.FromString(value) if kind else None
    except DecodeError:
        return
    if inner is None:
        return

    def put_back() -> None:
        setattr(message, field.name, inner.SerializeToString())

    for node, before in _nodes(inner):
        yield node, lambda before=before: (before(), put_back())[0]  # type: ignore[misc]


def _change(
    rng: random.Random, message: Message, put_back: Callable[[], None], nodes: list[tuple[Message, Any]]
) -> None:
    fields = message.DESCRIPTOR.fields
    present = [field for field, _ in message.ListFields()]
    if not fields:
        return
    field = rng.choice(present) if present and rng.random() < 0.8 else rng.choice(list(fields))
    same = [node for node, _ in nodes if type(node) is type(message) and node is not message]
    if same and rng.random() < 0.15:  # a part from elsewhere; one within itself makes it deeper
        other = type(message)()
        other.CopyFrom(rng.choice(same))
        message.CopyFrom(other)
    elif rng.random() < 0.12:
        message.ClearField(field.name)
    elif field.is_repeated and not _is_map(field):
        _change_list(rng, message, field)
    elif field.type == FieldDescriptor.TYPE_MESSAGE and not _is_map(field):
        _nest(rng, message, field)
    elif not _is_map(field):
        setattr(message, field.name, _other(rng, field, getattr(message, field.name)))
    put_back()


def _change_list(rng: random.Random, message: Message, field: FieldDescriptor) -> None:
    values = getattr(message, field.name)
    items = list(values)
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    kind = rng.choice(("drop", "twice", "many", "shuffle", "change", "change"))
    if kind == "drop" and items:
        del values[rng.randrange(len(items))]
    elif kind == "twice" and items:
        values.extend([rng.choice(items)])
    elif kind == "many":
        one = rng.choice(items) if items else field.message_type._concrete_class() if is_message else None
        if one is not None:
            values.extend([one] * rng.choice((10, 1000)))
    elif kind == "shuffle" and len(items) > 1:
        rng.shuffle(items)
        copies = [_copy(item) if is_message else item for item in items]
        del values[:]
        values.extend(copies)
    elif not is_message:
        value = _other(rng, field, rng.choice(items) if items else field.default_value or 0)
        if items:
            values[rng.randrange(len(items))] = value
        else:
            values.extend([value])


def _nest(rng: random.Random, message: Message, field: FieldDescriptor) -> None:
    """Select another choice of a message, or nest it in itself many times."""
    inner = getattr(message, field.name)
    inner.SetInParent()
    within = [f for f in inner.DESCRIPTOR.fields if f.message_type is message.DESCRIPTOR and not f.is_repeated]
    if within and rng.random() < 0.5:
        place = rng.choice(within).name
        for _ in range(rng.choice((1, 5, DEEPEST // 2))):
            copy = _copy(message)
            getattr(message, field.name).Clear()
            getattr(getattr(message, field.name), place).CopyFrom(copy)


def _copy(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _other(rng: random.Random, field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        data = bytes(value)
        if data and rng.random() < 0.5:
            return changed_bytes(rng, data)
        return rng.choice(BYTES)
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice((*TEXTS, "fixed_size_list:" * 50 + "float:3", str(value)[:-1], str(value) * 3))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not value
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice((0, 1, 2, 3, 99))
    near = (int(value) + rng.choice((-1, 1, 8)), int(value) * 2, int(value) // 2, -1, rng.randrange(200))
    number = rng.choice((*INTEGERS, *near, *near))
    if field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32):
        return (number + (1 << 31)) % (1 << 32) - (1 << 31)
    if field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32):
        return number % (1 << 32)
    return number if field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64) else number % (1 << 64)


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a word replaced, a piece cut out, doubled, or put elsewhere."""
    place, width = rng.randrange(max(len(data), 1)), rng.choice((1, 2, 4, 8))
    match rng.choice(("word", "word", "word", "cut", "twice", "move", "end")):
        case "word":
            word = (rng.choice(WORDS) % (1 << 8 * width)).to_bytes(width, "little")
            return data[:place] + word[: len(data) - place] + data[place + width :]
        case "cut":
            return data[:place] + data[place + width :]
        case "twice":
            return data[:place] + data[place : place + 8 * width] + data[place:]
        case "move":
            other = rng.randrange(max(len(data), 1))
            piece = data[other : other + width]
            return data[:place] + piece + data[place + len(piece) :]
    return data[:place]


def changed_json(rng: random.Random, text: bytes) -> bytes:
    """Return JSON with one changed value; other bytes are changed as bytes."""
    try:
        value = json.loads(text)
    except ValueError:
        return changed_bytes(rng, text)
    if isinstance(value, dict) and value:
        value[rng.choice(list(value))] = rng.choice(NUMBERS)
    elif isinstance(value, list) and value:
        value[rng.randrange(len(value))] = rng.choice(NUMBERS)
    else:
        value = rng.choice(NUMBERS)
    return json.dumps(value).encode()


def changed_manifest(rng: random.Random, data: bytes) -> bytes:
    """Return the file of a manifest with changes in its index section, its transaction or the manifest."""
    manifest = read_manifest(data)
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    head, lot = data[:place], rng.random()
    sections: dict[str, type[Message]] = {
        "index_section": table_pb2.IndexSection,
        "transaction_section": transaction_pb2.Transaction,
    }
    for name, kind in sections.items():
        start = getattr(manifest, name)
        if manifest.HasField(name) and lot < 0.3:
            (size,) = struct.unpack_from("<I", data, start)
            body = changed_message(rng, kind.FromString(data[start + 4 : start + 4 + size])).SerializeToString()
            setattr(manifest, name, len(head))  # appended, so that other buffers keep their offsets
            head += struct.pack("<I", len(body)) + body
            lot = rng.random()
    is_changed = len(head) > place and rng.random() < 0.5
    last = (manifest if is_changed else changed_message(rng, manifest)).SerializeToString()
    return head + struct.pack("<I", len(last)) + last + struct.pack("<Q", len(head)) + data[-8:]


def changed_container(rng: random.Random, data: bytes) -> bytes:
    """Return a data file, or a file of an index, with changes in metadata of columns, global buffers or the footer."""
    start, table, buffers, num_buffers, num_columns, major, minor = struct.unpack_from("<QQQIIHH", data, len(data) - 40)
    places = [struct.unpack_from("<QQ", data, table + 16 * i) for i in range(num_columns)]
    columns = [data[place : place + size] for place, size in places]
    places = [struct.unpack_from("<QQ", data, buffers + 16 * i) for i in range(num_buffers)]
    parts = [data[place : place + size] for place, size in places]
    for _ in range(rng.choice((1, 1, 2))):
        lot = rng.random()
        if columns and lot < 0.6:
            at = rng.randrange(len(columns))
            columns[at] = changed_message(rng, file2_pb2.ColumnMetadata.FromString(columns[at])).SerializeToString()
        elif columns and lot < 0.65:
            rng.shuffle(columns)
        elif lot < 0.8 or len(parts) < 2:
            parts[0] = _changed_descriptor(rng, parts[0]) if parts else b""
        else:
            at = rng.randrange(1, len(parts))
            parts[at] = _changed_buffer(rng, parts[at])
    return _container(rng, data[:start], columns, parts, major, minor)


def _container(
    rng: random.Random, head: bytes, columns: list[bytes], parts: list[bytes], major: int, minor: int
) -> bytes:
    entries = b""
    for part in parts:
        entries += struct.pack("<QQ", len(head), len(part))
        head += part
    start, body, table = len(head), b"", b""
    for column in columns:
        table += struct.pack("<QQ", start + len(body), len(column))
        body += column
    if rng.random() < 0.1:
        table = changed_bytes(rng, table)
    if rng.random() < 0.1:
        entries = changed_bytes(rng, entries)
    places = (start, start + len(body), start + len(body) + len(table))
    tail = struct.pack("<QQQIIHH", *places, len(parts), len(columns), major, minor)
    if rng.random() < 0.1:
        tail = changed_bytes(rng, tail)
    return head + body + table + entries + tail + b"LANC"


def _changed_descriptor(rng: random.Random, part: bytes) -> bytes:
    descriptor = file_pb2.FileDescriptor.FromString(part)
    metadata = descriptor.schema.metadata
    if metadata and rng.random() < 0.5:
        key = rng.choice(sorted(metadata))
        metadata[key] = changed_json(rng, metadata[key])
        return descriptor.SerializeToString()
    return changed_message(rng, descriptor).SerializeToString()


def _changed_buffer(rng: random.Random, part: bytes) -> bytes:
    """Change a global buffer: as a message if it holds one for a vector index, else as bytes."""
    for kind in (index_pb2.IVF, index_pb2.Tensor):
        try:
            message = kind.FromString(part)
        except DecodeError:
            continue
        if message.ListFields() and rng.random() < 0.8:
            return changed_message(rng, message).SerializeToString()
    return changed_bytes(rng, part)


def changed_legacy(rng: random.Random, data: bytes) -> bytes:
    """Return a data file of version 0.1 with changes in its metadata, its manifest, or its table of pages."""
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, place)
    metadata = file_pb2.Metadata.FromString(data[place + 4 : place + 4 + size])
    head, lot = data[:place], rng.random()
    if lot < 0.5:
        start = metadata.manifest_position
        (size,) = struct.unpack_from("<I", data, start)
        manifest = changed_message(rng, table_pb2.Manifest.FromString(data[start + 4 : start + 4 + size]))
        body = manifest.SerializeToString()
        metadata.manifest_position = len(head)
        head += struct.pack("<I", len(body)) + body
    elif lot < 0.7:
        start = metadata.page_table_position
        head = head[:start] + changed_bytes(rng, head[start : start + 4096]) + head[start + 4096 :]
    last = (changed_message(rng, metadata) if lot > 0.4 else metadata).SerializeToString()
    return head + struct.pack("<I", len(last)) + last + struct.pack("<Q", len(head)) + data[-8:]
