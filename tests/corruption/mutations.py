"""Damage to a file, as small values that can be named in a message, sent to another process and done again.

A mutation is a tuple: its kind, then numbers. `apply` makes the damaged bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

Mutation = tuple[object, ...]

EXTREMES = (0, 1, 7, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def apply(data: bytes, mutation: Mutation) -> bytes:
    """Return the damaged bytes."""
    kind, *args = mutation
    numbers = [int(a) for a in args]  # type: ignore[call-overload]
    if kind == "flip":
        return _flip(data, *numbers)
    if kind == "xor":
        place, mask = numbers
        return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]
    if kind == "cut":
        return data[: numbers[0]]
    if kind == "cut_front":
        return data[numbers[0] :]
    if kind == "fill":
        place, size, byte = numbers
        return data[:place] + bytes([byte]) * len(data[place : place + size]) + data[place + size :]
    if kind == "word":
        place, width, value = numbers
        word = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        return data[:place] + word[: len(data) - place] + data[place + width :]
    if kind == "append":
        return data + random.Random(numbers[0]).randbytes(numbers[1])
    raise ValueError(f"no such mutation: {kind}")


def _flip(data: bytes, seed: int, count: int) -> bytes:
    rng = random.Random(seed)
    changed = bytearray(data)
    for _ in range(count if changed else 0):
        changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
    return bytes(changed)


def at_random(size: int, seed: int, count: int) -> Iterator[Mutation]:
    """Yield `count` mutations anywhere in a file of `size` bytes."""
    rng = random.Random(seed)
    for _ in range(count):
        place = rng.randrange(max(size, 1))
        yield rng.choice(
            [
                ("flip", rng.randrange(1 << 30), rng.choice([1, 2, 8, 64])),
                ("cut", place),
                ("fill", place, rng.choice([1, 4, 8, 64]), rng.choice([0, 255])),
                ("word", place, rng.choice([2, 4, 8]), rng.choice(EXTREMES)),
                ("append", rng.randrange(1 << 30), rng.choice([1, 8, 40])),
                ("cut_front", rng.choice([1, 8, place])),
            ]
        )


def every_byte(start: int, stop: int) -> Iterator[Mutation]:
    """Yield, for each byte, one mutation that turns all its bits, one its lowest and one its highest."""
    for place in range(start, stop):
        for mask in (0xFF, 0x01, 0x80):
            yield ("xor", place, mask)


def every_length(start: int, stop: int) -> Iterator[Mutation]:
    """Yield a cut at each length."""
    for size in range(start, stop):
        yield ("cut", size)


def every_word(start: int, stop: int, width: int) -> Iterator[Mutation]:
    """Yield values that are most harmful as sizes and positions, for each offset."""
    for place in range(start, stop):
        for value in EXTREMES:
            yield ("word", place, width, value)
