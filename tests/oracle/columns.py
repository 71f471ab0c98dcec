"""The catalogue of flat column kinds: numbers, times, strings, binary, dictionaries, and requested encodings."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import string

import numpy as np
import pyarrow as pa
from lance.arrow import bfloat16_array
from oracle.kinds import VERSIONS, Kind, Make, Rng

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
UNITS = ("s", "ms", "us", "ns")
WORDS = ("red", "green", "blue", "", "a rather longer word", "ünïcödé ✓", "紅", "x")


def catalogue() -> list[Kind]:
    """Return every flat kind."""
    return [
        *integers(),
        *floats(),
        *decimals(),
        *booleans(),
        *times(),
        *texts(),
        *blobs(),
        *dictionaries(),
        *hinted(),
        Kind("null_type", lambda _, n: pa.nulls(n)),
    ]


def integers() -> list[Kind]:
    return [Kind(f"{t}_{shape}", make) for t in INTEGERS for shape, make in _integer_shapes(t).items()]


def _integer_shapes(name: str) -> dict[str, Make]:
    dtype = np.dtype(name)
    info = np.iinfo(dtype)

    def wide(rng: Rng, n: int) -> np.ndarray:
        return rng.integers(info.min, info.max, n, dtype, endpoint=True)

    def small(rng: Rng, n: int) -> np.ndarray:
        return rng.integers(0, 7, n).astype(dtype)

    def outliers(rng: Rng, n: int) -> np.ndarray:
        values = small(rng, n)
        values[:: max(1, n // 5)] = info.max
        return values

    def runs(rng: Rng, n: int) -> np.ndarray:
        return np.repeat(rng.integers(0, 50, n), rng.integers(1, 700, n))[:n].astype(dtype)

    def bounds(rng: Rng, n: int) -> np.ndarray:
        return rng.choice(np.array([info.min, info.max, 0], dtype), n)

    shapes = {
        "random": wide,
        "small": small,
        "sorted": lambda rng, n: np.sort(rng.integers(0, min(info.max, 10 * n + 1), n)).astype(dtype),
        "runs": runs,
        "constant": lambda _, n: np.full(n, 7, dtype),
        "outliers": outliers,
        "bounds": bounds,
    }
    if info.min < 0:
        shapes["negative"] = lambda rng, n: rng.integers(-100, 100, n).astype(dtype)
    return {shape: _arrow(make) for shape, make in shapes.items()}


def _arrow(make: Make, type_: pa.DataType | None = None) -> Make:
    return lambda rng, n: pa.array(make(rng, n), type_)


def floats() -> list[Kind]:
    kinds = []
    for name in ("float16", "float32", "float64"):
        special = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, np.finfo(name).max, np.finfo(name).tiny / 4], name)
        kinds += [
            Kind(f"{name}_random", _arrow(lambda rng, n, t=name: rng.standard_normal(n).astype(t))),
            Kind(f"{name}_special", _arrow(lambda rng, n, s=special: rng.choice(s, n))),
            Kind(f"{name}_few", _arrow(lambda rng, n, t=name: rng.integers(0, 20, n).astype(t) / 4)),
            Kind(f"{name}_runs", _arrow(lambda rng, n, t=name: np.repeat(rng.standard_normal(n), 90)[:n].astype(t))),
            Kind(f"{name}_constant", _arrow(lambda _, n, t=name: np.full(n, 2.5, t))),
        ]
    kinds.append(Kind("bfloat16", lambda rng, n: bfloat16_array(rng.standard_normal(n).tolist())))
    return kinds


def decimals() -> list[Kind]:
    sizes = [
        (128, 4, 1),
        (128, 9, 0),
        (128, 18, 4),
        (128, 28, 28),
        (128, 38, 10),
        (256, 20, 2),
        (256, 50, 5),
        (256, 76, 0),
    ]
    kinds = []
    for bits, precision, scale in sizes:
        type_ = getattr(pa, f"decimal{bits}")(precision, scale)
        name = f"decimal{bits}_{precision}_{scale}"
        kinds += [
            Kind(f"{name}_random", _decimal(type_, 10**precision - 1, 10**9), duckdb=precision <= 38),
            Kind(f"{name}_few", _decimal(type_, 30, 30), duckdb=precision <= 38),
        ]
    return [*kinds, Kind("decimal128_12_2_constant", _decimal(pa.decimal128(12, 2), 5, 1))]


def _decimal(type_: pa.DataType, largest: int, parts: int) -> Make:
    """Make decimals in `parts` steps between minus and plus `largest` units of the last digit."""

    def make(rng: Rng, n: int) -> pa.Array:
        context = decimal.Context(prec=80)
        units = [int(p) * largest // parts for p in rng.integers(-parts, parts, n, endpoint=parts > 1)]
        return pa.array([context.scaleb(decimal.Decimal(u), -type_.scale) for u in units], type_)

    return make


def booleans() -> list[Kind]:
    return [
        Kind("bool_random", _arrow(lambda rng, n: rng.random(n) < 0.5)),
        Kind("bool_constant", _arrow(lambda _, n: np.ones(n, bool))),
        Kind("bool_runs", _arrow(lambda _, n: np.arange(n) // 300 % 2 == 0)),
        Kind("bool_not_null", _arrow(lambda rng, n: rng.random(n) < 0.1), nullable=False),
        Kind("int32_not_null", _arrow(lambda rng, n: rng.integers(0, 9, n).astype("int32")), nullable=False),
        Kind("string_not_null", _arrow(lambda rng, n: [str(i) for i in rng.integers(0, 10**9, n)]), nullable=False),
    ]


def times() -> list[Kind]:
    day = 86_400
    plain = [
        ("date32", pa.date32(), "int32", -20_000, 20_000, 1),
        ("date64", pa.date64(), "int64", -20_000, 20_000, day * 1000),
        ("time32_s", pa.time32("s"), "int32", 0, day, 1),
        ("time32_ms", pa.time32("ms"), "int32", 0, day * 1000, 1),
        ("time64_us", pa.time64("us"), "int64", 0, day * 10**6, 1),
        ("time64_ns", pa.time64("ns"), "int64", 0, day * 10**9, 1),
    ]
    for unit, tz in itertools.product(UNITS, (None, "UTC", "Europe/Berlin", "+02:00")):
        name = f"timestamp_{unit}" + (f"_{tz}" if tz else "")
        scale = 1000 ** UNITS.index(unit)
        plain.append((name, pa.timestamp(unit, tz), "int64", -(2**30) * scale, 2**30 * scale, 1))
    plain += [(f"duration_{u}", pa.duration(u), "int64", -(10**9), 10**9, 1) for u in UNITS]
    return [
        Kind(
            name,
            lambda rng, n, t=t, s=s, lo=lo, hi=hi, k=k: pa.array(rng.integers(lo, hi, n).astype(s) * k).cast(s).view(t),
        )
        for name, t, s, lo, hi, k in plain
    ]


def random_words(rng: Rng, n: int, shortest: int, longest: int, letters: str = string.ascii_letters) -> list[str]:
    """Return n random strings of shortest to longest letters."""
    sizes = rng.integers(shortest, longest, n, endpoint=True)
    picked = "".join(np.array(list(letters))[rng.integers(0, len(letters), int(sizes.sum()))])
    ends = np.cumsum(sizes)
    return [picked[e - s : e] for s, e in zip(sizes, ends, strict=True)]


def _text_shapes() -> dict[str, Make]:
    return {
        "few": lambda rng, n: rng.choice(np.array(WORDS, object), n).tolist(),
        "many": lambda rng, n: random_words(rng, n, 3, 24),
        "urls": lambda rng, n: [f"https://example.org/articles/{i}?page={i % 7}" for i in rng.integers(0, 10**7, n)],
        "one_letter": lambda rng, n: random_words(rng, n, 1, 1),
        "mixed": lambda rng, n: random_words(rng, n, 0, 400) if n < 5 else _mixed(rng, n),
        "unicode": lambda rng, n: random_words(rng, n, 0, 12, "aé✓紅😀\u0000"),
        "constant": lambda _, n: ["same"] * n,
        "empty": lambda _, n: [""] * n,
    }


def _mixed(rng: Rng, n: int) -> list[str]:
    words = random_words(rng, n, 0, 9)
    words[n // 2] = "long " * 1500
    words[-1] = ""
    return words


def texts() -> list[Kind]:
    types = {"string": pa.string(), "large_string": pa.large_string()}
    kinds = [Kind(f"{t}_{s}", _arrow(make, types[t])) for t in types for s, make in _text_shapes().items()]
    kinds.append(Kind("string_view", _arrow(lambda rng, n: random_words(rng, n, 0, 30), pa.string_view())))
    for name, type_ in types.items():
        kinds.append(Kind(f"{name}_long", _arrow(lambda rng, n: random_words(rng, n, 300, 900), type_), wide=True))
    kinds.append(Kind("string_long_few", _arrow(lambda rng, n: ["ab" * 300 + str(i % 5) for i in range(n)]), wide=True))
    documents = _arrow(lambda rng, n: [json.dumps({"a": int(i), "b": [1, None, "x"]}) for i in rng.integers(0, 99, n)])
    kinds.append(
        Kind("json", lambda rng, n: pa.ExtensionArray.from_storage(pa.json_(), documents(rng, n)), duckdb=False)
    )
    return kinds


def blobs() -> list[Kind]:
    def short(rng: Rng, n: int) -> list[bytes]:
        return [rng.bytes(int(k)) for k in rng.integers(0, 20, n)]

    def huge(rng: Rng, n: int) -> list[bytes]:
        return [rng.bytes(33_000) if i % 40 == 0 else bytes(34_000) if i % 40 == 1 else b"tiny" for i in range(n)]

    kinds = [
        Kind("binary_short", _arrow(short, pa.binary())),
        Kind("binary_empty", _arrow(lambda _, n: [b""] * n, pa.binary())),
        Kind("binary_few", _arrow(lambda rng, n: [bytes([k] * k) for k in rng.integers(0, 6, n)], pa.binary())),
        Kind("large_binary", _arrow(short, pa.large_binary())),
        Kind("binary_view", _arrow(short, pa.binary_view())),
        Kind("binary_long", _arrow(lambda rng, n: [rng.bytes(700) for _ in range(n)], pa.binary()), wide=True),
        Kind("binary_huge", _arrow(huge, pa.binary()), wide=True),
        Kind("large_binary_huge", _arrow(huge, pa.large_binary()), wide=True),
        Kind("uuid", lambda rng, n: pa.ExtensionArray.from_storage(pa.uuid(), _fixed(rng, n, 16))),
    ]
    fixed = {f"fixed_size_binary_{s}": s for s in (1, 3, 16, 300)}
    return kinds + [Kind(k, lambda rng, n, s=s: _fixed(rng, n, s), wide=s > 255) for k, s in fixed.items()]


def _fixed(rng: Rng, n: int, size: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), n, [None, pa.py_buffer(rng.bytes(n * size))])


def dictionaries() -> list[Kind]:
    def coded(values: pa.Array, index: str) -> Make:
        return lambda rng, n: pa.DictionaryArray.from_arrays(
            pa.array(rng.integers(0, len(values), n).astype(index)), values
        )

    words = pa.array([*WORDS, *(f"word {i}" for i in range(40))])
    kinds = [Kind(f"dictionary_{i}", coded(words, i)) for i in INTEGERS]
    others = {
        "large_string": words.cast(pa.large_string()),
        "binary": words.cast(pa.binary()),
        "int64": pa.array(np.arange(30) * 10**12),
        "float64": pa.array(np.arange(30) / 3),
    }
    dates = pa.array([datetime.date(2020, 1, i + 1) for i in range(20)])
    kinds += [Kind(f"dictionary_of_{name}", coded(values, "int32")) for name, values in others.items()]
    refused = (*VERSIONS, *(f"{v}/empty" for v in VERSIONS))
    return [*kinds, Kind("dictionary_of_date32", coded(dates, "int32"), refused=refused)]


def _hint_refused(name: str, codec: str) -> tuple[str, ...]:
    return ("2.0/all_null",) if codec == "fsst" and name in ("string", "binary") else ()


def hinted() -> list[Kind]:
    """Return kinds whose metadata requests a compression or a layout."""
    base = {
        "string": _arrow(lambda rng, n: random_words(rng, n, 3, 40)),
        "float32": _arrow(lambda rng, n: np.sort(rng.standard_normal(n)).astype("float32")),
        "float64": _arrow(lambda rng, n: np.cumsum(rng.standard_normal(n))),
        "int32": _arrow(lambda rng, n: np.sort(rng.integers(0, 10**9, n)).astype("int32")),
        "int64": _arrow(lambda rng, n: rng.integers(0, 10**15, n)),
        "binary": _arrow(lambda rng, n: [rng.bytes(int(k)) * 3 for k in rng.integers(0, 20, n)], pa.binary()),
        "timestamp": lambda rng, n: pa.array(rng.integers(0, 2**50, n)).view(pa.timestamp("us")),
    }
    prefix = "lance-encoding:"
    kinds = [
        Kind(f"{name}_{codec}", make, {f"{prefix}compression": codec}, refused=_hint_refused(name, codec))
        for (name, make), codec in itertools.product(base.items(), ("zstd", "lz4", "none", "fsst"))
    ]
    for name in ("float32", "float64", "int32", "int64"):
        metadata = {f"{prefix}compression": "lz4", f"{prefix}bss": "on"}
        kinds.append(Kind(f"{name}_bss_lz4", base[name], metadata))
        kinds.append(Kind(f"{name}_bss_zstd", base[name], {**metadata, f"{prefix}compression": "zstd"}))
        kinds.append(
            Kind(
                f"{name}_rle",
                _arrow(lambda rng, n, t=name: np.arange(n).astype(t) // 3),
                {f"{prefix}rle-threshold": "0.9"},
            )
        )
    for name, layout in itertools.product(("string", "int32", "float64", "binary"), ("fullzip", "miniblock")):
        kinds.append(Kind(f"{name}_{layout}", base[name], {f"{prefix}structural-encoding": layout}))
    kinds.append(
        Kind(
            "string_fullzip_zstd",
            base["string"],
            {f"{prefix}structural-encoding": "fullzip", f"{prefix}compression": "zstd"},
        )
    )
    kinds.append(
        Kind("bool_fullzip", _arrow(lambda rng, n: rng.random(n) < 0.5), {f"{prefix}structural-encoding": "fullzip"})
    )
    return kinds
