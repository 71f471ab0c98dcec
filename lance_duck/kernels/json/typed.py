"""Kernel for the rarer JSONB types: decimals, bytes, dates, times, intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.json.jsonb import put_byte
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

BYTES, DATE, TIMESTAMP, TIMESTAMP_TZ, INTERVAL, DECIMAL = 0, 0x10, 0x20, 0x30, 0x40, 0x70
_DIGITS = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
_UNITS = np.frombuffer(b" year month day", dtype=np.uint8)
_UNIT_ENDS = np.array([0, 5, 11, 15], dtype=np.int64)
_DAY_MICROS = 86_400_000_000
_TWO_64, _TWO_128 = 2.0**64, 2.0**128


@subroutine
def big_endian(data: Bytes, start: int, size: int) -> np.int64:
    """Return a signed big-endian number of 1 to 8 bytes."""
    value = np.int64(data[start])
    if value >= 128:
        value -= 256
    for i in range(1, size):
        value = (value << 8) | np.int64(data[start + i])
    return value


@subroutine
def _u64(data: Bytes, start: int, flip: np.uint64) -> np.uint64:
    value = np.uint64(0)
    for i in range(8):
        value = (value << np.uint64(8)) | np.uint64(data[start + i])
    return value ^ flip


@subroutine
def _u128_as_float(high: np.uint64, low: np.uint64) -> float:
    """Return the nearest float. Shifts the top bit of `high` up first, which makes one rounding sufficient."""
    if high == 0:
        return float(low)
    shift = 0
    while (high >> np.uint64(63)) == 0:
        high = (high << np.uint64(1)) | (low >> np.uint64(63))
        low <<= np.uint64(1)
        shift += 1
    if low:
        high |= np.uint64(1)
    value = float(high) * _TWO_64
    for _ in range(shift):
        value *= 0.5
    return value


@subroutine
def _coefficient(data: Bytes, start: int, size: int) -> float:
    """Return a signed number of 8, 16 or 32 bytes as a float."""
    if size == 8:
        return float(big_endian(data, start, 8))
    negative = data[start] >= 128
    flip = np.uint64(0xFFFFFFFFFFFFFFFF) if negative else np.uint64(0)
    carry = np.uint64(1) if negative else np.uint64(0)
    end = start + size
    low = _u64(data, end - 8, flip) + carry
    carry = carry if low == 0 else np.uint64(0)
    high = _u64(data, end - 16, flip) + carry
    carry = carry if high == 0 else np.uint64(0)
    value = _u128_as_float(high, low)
    if size == 32:
        low = _u64(data, start + 8, flip) + carry
        carry = carry if low == 0 else np.uint64(0)
        high = _u64(data, start, flip) + carry
        if high or low:
            value += _u128_as_float(high, low) * _TWO_128
    return -value if negative else value


@subroutine
def _decimal(data: Bytes, start: int, size: int) -> float:
    """Return the value of a decimal. `size` includes the tag.

    Computes the power of ten by squaring, as pylance does, to produce the same text.
    """
    scale, base, power = int(data[start + size - 1]), 10.0, 1.0
    while True:
        if scale & 1:
            power *= base
        scale >>= 1
        if scale == 0:
            break
        base *= base
    return _coefficient(data, start + 1, 8 if size < 16 else 16 if size < 32 else 32) / power


@subroutine
def _put_padded(out: Bytes, at: int, value: np.int64, width: int) -> int:
    """Write a non-negative number, zero-padded to a width."""
    digits, rest = 1, value // 10
    while rest > 0:
        rest //= 10
        digits += 1
    end = at + max(digits, width)
    for i in range(end - 1, at - 1, -1):
        if i < len(out):
            out[i] = 48 + np.uint8(value % 10)
        value //= 10
    return end


@subroutine
def _put_date(out: Bytes, at: int, days: np.int64, long: bool) -> int:
    """Write the date of a day number since 1970. Years before 0 get six digits if `long`, otherwise at least three."""
    days += 719_468
    era = days // 146_097
    day = days - era * 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    year += 400 * era + (1 if month <= 2 else 0)
    if year < 0:
        at = put_byte(out, at, 45)
    at = _put_padded(out, at, abs(year), 4 if year >= 0 else 6 if long else 3)
    at = _put_padded(out, put_byte(out, at, 45), month, 2)
    return _put_padded(out, put_byte(out, at, 45), day, 2)


@subroutine
def _put_clock(out: Bytes, at: int, seconds: np.int64, micros: np.int64, always: bool) -> int:
    at = _put_padded(out, at, seconds // 3600, 2)
    at = _put_padded(out, put_byte(out, at, 58), seconds // 60 % 60, 2)
    at = _put_padded(out, put_byte(out, at, 58), seconds % 60, 2)
    if always or micros:
        at = _put_padded(out, put_byte(out, at, 46), micros, 6)
    return at


@subroutine
def _put_timestamp(out: Bytes, at: int, micros: np.int64, offset: np.int64) -> int:
    """Write a timestamp in local time, `offset` seconds ahead of UTC."""
    days = micros // _DAY_MICROS
    rest = micros - days * _DAY_MICROS + offset * 1_000_000
    moved = rest // _DAY_MICROS
    rest -= moved * _DAY_MICROS
    at = put_byte(out, _put_date(out, at, days + moved, False), 32)
    return _put_clock(out, at, rest // 1_000_000, rest % 1_000_000, True)


@subroutine
def _put_zone(out: Bytes, at: int, offset: np.int64) -> int:
    at = put_byte(out, put_byte(out, at, 32), 45 if offset < 0 else 43)
    seconds = abs(offset)
    at = _put_padded(out, _put_padded(out, at, seconds // 3600, 2), seconds // 60 % 60, 2)
    return at if seconds % 60 == 0 else _put_padded(out, at, seconds % 60, 2)


@subroutine
def _put_unit(out: Bytes, at: int, start: int, count: np.int64, unit: int) -> int:
    """Write one unit of an interval, unless it is 0."""
    if count == 0:
        return at
    if at > start:
        at = put_byte(out, at, 32)
    if count < 0:
        at = put_byte(out, at, 45)
    at = _put_padded(out, at, abs(count), 1)
    for i in range(_UNIT_ENDS[unit], _UNIT_ENDS[unit + 1]):
        at = put_byte(out, at, _UNITS[i])
    return at if abs(count) == 1 else put_byte(out, at, 115)


@subroutine
def _put_interval(out: Bytes, at: int, data: Bytes, start: int) -> int:
    """Write months, days and microseconds as an interval. Each unit has its own sign."""
    first, months = at, big_endian(data, start, 4)
    days, micros = big_endian(data, start + 4, 4), big_endian(data, start + 8, 8)
    sign = -1 if months < 0 else 1
    at = _put_unit(out, at, first, sign * (abs(months) // 12), 0)
    at = _put_unit(out, at, first, sign * (abs(months) % 12), 1)
    at = _put_unit(out, at, first, days, 2)
    if micros == 0 and at > first:
        return at
    if at > first:
        at = put_byte(out, at, 32)
    seconds = micros // 1_000_000
    micros -= seconds * 1_000_000
    if seconds < 0:
        at = put_byte(out, at, 45)
        seconds = -seconds
        if micros:
            seconds -= 1
            micros = 1_000_000 - micros
    return _put_clock(out, at, seconds, micros, False)


@subroutine
def _put_extension(data: Bytes, start: int, size: int, out: Bytes, at: int) -> int:
    tag, begin, width = int(data[start]), start + 1, size - 1
    at = put_byte(out, at, 34)
    if tag == BYTES:
        for i in range(begin, begin + width):
            at = put_byte(out, put_byte(out, at, _DIGITS[data[i] >> 4]), _DIGITS[data[i] & 15])
    elif tag == DATE:
        at = _put_date(out, at, big_endian(data, begin, 4), True)
    elif tag == TIMESTAMP:
        at = _put_timestamp(out, at, big_endian(data, begin, 8), np.int64(0))
    elif tag == TIMESTAMP_TZ:
        offset = big_endian(data, begin + 8, 4) if width == 12 else 3600 * big_endian(data, begin + 8, 1)
        at = _put_zone(out, _put_timestamp(out, at, big_endian(data, begin, 8), offset), offset)
    else:
        at = _put_interval(out, at, data, begin)
    return put_byte(out, at, 34)


@kernel
def typed_text(data: Bytes, typed: Int64s, floats: Float64s, out: Bytes, ends: Int64s) -> None:
    """Compute decimals, and write extension values as strings.

    Args:
        data: The values of a column.
        typed: (3 n,): see `jsonb_text`, which has checked the tags and sizes.
        floats: Receives the values of decimals at their positions.
        out: Receives the strings until it is full.
        ends: (n + 1,), receives the string offsets. Decimals do not have a string.
    """
    at = 0
    for i in range(len(ends) - 1):
        number, start, size = typed[3 * i], typed[3 * i + 1], typed[3 * i + 2]
        if data[start] == DECIMAL:
            floats[number] = _decimal(data, start, size)
        else:
            at = _put_extension(data, start, size, out, at)
        ends[i + 1] = at
