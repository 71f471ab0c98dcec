"""Damage that keeps protobuf messages well-formed: one field of one message gets another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

INTEGERS = (0, 1, 3, 100, 1 << 15, 1 << 20, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
BYTES = (b"", b"\x00", b"\xff" * 17, bytes(300))
TEXTS = ("", "../../x", "/etc/passwd", "nope", "a" * 300)
Setter = Callable[[Message], None]


def variants(message: Message) -> Iterator[tuple[str, Message]]:
    """Yield (description, changed copy) for each single change of each field at each depth."""
    for path, change in _changes(message, ()):
        copy = type(message)()
        copy.CopyFrom(message)
        try:
            change(copy)
        except (ValueError, TypeError):
            continue  # the value does not fit the field's type
        yield path, copy


def _changes(message: Message, path: tuple[str, ...]) -> Iterator[tuple[str, Setter]]:
    for field, value in message.ListFields():
        name = ".".join((*path, field.name))
        yield f"{name} cleared", lambda m, f=field.name: m.ClearField(f)
        if field.is_repeated:
            yield from _repeated_changes(field, value, path, name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            yield from _below(_changes(value, (*path, field.name)), lambda m, f=field.name: getattr(m, f))
        else:
            for other in _others(field, value):
                yield f"{name} = {other!r:.40}", lambda m, f=field.name, v=other: setattr(m, f, v)


def _repeated_changes(
    field: FieldDescriptor, value: object, path: tuple[str, ...], name: str
) -> Iterator[tuple[str, Setter]]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return
    items = list(value)  # type: ignore[call-overload]
    yield f"{name} without the last", lambda m, f=field.name: getattr(m, f).pop()
    yield f"{name} with the last twice", lambda m, f=field.name, v=items[-1]: getattr(m, f).extend([v])
    for i, item in enumerate(items[:3]):
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            below = _changes(item, (*path, f"{field.name}[{i}]"))
            yield from _below(below, lambda m, f=field.name, i=i: getattr(m, f)[i])
        else:
            for other in _others(field, item):
                yield f"{name}[{i}] = {other!r:.40}", lambda m, f=field.name, i=i, v=other: _set_item(m, f, i, v)


def _below(changes: Iterator[tuple[str, Setter]], child: Callable[[Message], Message]) -> Iterator[tuple[str, Setter]]:
    for path, change in changes:
        yield path, lambda m, c=change: c(child(m))


def _set_item(message: Message, field: str, i: int, value: object) -> None:
    getattr(message, field)[i] = value


def _others(field: FieldDescriptor, value: object) -> tuple[object, ...]:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return (*BYTES, value[: len(value) // 2])  # type: ignore[index, arg-type]
    if field.type == FieldDescriptor.TYPE_STRING:
        return TEXTS
    if field.type == FieldDescriptor.TYPE_BOOL:
        return (not value,)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return (0, 1, 2, 99)
    if isinstance(value, int):
        return (*INTEGERS, value + 1, value - 1, value * 2)
    return ()
