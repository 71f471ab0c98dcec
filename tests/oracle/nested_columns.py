"""The catalogue of nested column kinds: fixed-size lists, lists, structs, maps, packed structs, blobs."""

from __future__ import annotations

from collections.abc import Callable

import lance
import numpy as np
import pyarrow as pa
from oracle.columns import random_words
from oracle.kinds import Kind, Make, Rng

ONLY_22 = ("2.0", "2.1")
NO_STRUCT_NULLS = ("2.0/nulls", "2.0/all_null", "2.0/sliced")
NO_NULLS = (*NO_STRUCT_NULLS, "2.1/nulls", "2.1/sliced", "2.2/nulls", "2.2/sliced")
_NULL_STRUCT = ("2.0/none", "2.0/nulls", "2.0/sliced")
NO_VALUES = ("none", "nulls", "sliced")
PACKED_FSL = (*NO_STRUCT_NULLS, *(f"2.1/{p}" for p in NO_VALUES), "2.2/nulls", "2.2/sliced")
PACKED_22 = ("2.0", *(f"2.1/{p}" for p in NO_VALUES), "2.2/nulls", "2.2/sliced")


def catalogue() -> list[Kind]:
    """Return every nested kind."""
    return [*vectors(), *lists(), *structs(), *maps(), *packed(), *blob_columns()]


def holes(array: pa.Array, rng: Rng, share: float = 0.15) -> pa.Array:
    """Return the array with nulls at random positions."""
    return array.take(pa.array(np.arange(len(array)), mask=rng.random(len(array)) < share))


def floats(rng: Rng, n: int) -> pa.Array:
    return pa.array(rng.standard_normal(n).astype("float32"))


def ints(rng: Rng, n: int) -> pa.Array:
    return pa.array(rng.integers(-1000, 1000, n).astype("int32"))


def words(rng: Rng, n: int) -> pa.Array:
    return pa.array(random_words(rng, n, 0, 12), pa.string())


def null_ints(rng: Rng, n: int) -> pa.Array:
    return holes(ints(rng, n), rng)


def null_words(rng: Rng, n: int) -> pa.Array:
    return holes(words(rng, n), rng)


def long_words(rng: Rng, n: int) -> pa.Array:
    return pa.array(random_words(rng, n, 280, 500), pa.string())


def fsl(make: Make, dim: int) -> Make:
    return lambda rng, n: pa.FixedSizeListArray.from_arrays(make(rng, n * dim), dim)


def listed(make: Make, longest: int = 6, *, large: bool = False, nulls: float = 0.0) -> Make:
    """Lists of 0 to `longest` items; `nulls` is the share of null lists."""
    kind = pa.LargeListArray if large else pa.ListArray

    def build(rng: Rng, n: int) -> pa.Array:
        ends = np.cumsum(np.concatenate([[0], rng.integers(0, longest, n, endpoint=True)]))
        array = kind.from_arrays(pa.array(ends.astype("int64" if large else "int32")), make(rng, int(ends[-1])))
        return holes(array, rng, nulls) if nulls else array

    return build


def struct(*, nulls: float = 0.0, **children: Make) -> Make:
    def build(rng: Rng, n: int) -> pa.Array:
        array = pa.StructArray.from_arrays([make(rng, n) for make in children.values()], list(children))
        return holes(array, rng, nulls) if nulls else array

    return build


def mapped(key: Callable[[int], object], key_type: pa.DataType, item: Make) -> Make:
    def build(rng: Rng, n: int) -> pa.Array:
        sizes = rng.integers(0, 5, n)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        keys = pa.array([key(i) for size in sizes for i in range(size)], key_type)
        return pa.MapArray.from_arrays(pa.array(ends.astype("int32")), keys, item(rng, int(ends[-1])))

    return build


def vectors() -> list[Kind]:
    def cast(type_: str) -> Make:
        return lambda rng, n: pa.array(rng.integers(0, 100, n).astype(type_))

    plain = {
        "float32_16": fsl(floats, 16),
        "float16_64": fsl(cast("float16"), 64),
        "uint8_32": fsl(cast("uint8"), 32),
        "bool_8": fsl(lambda rng, n: pa.array(rng.random(n) < 0.5), 8),
        "bool_3": fsl(lambda rng, n: pa.array(rng.random(n) < 0.5), 3),
        "float64_4": fsl(cast("float64"), 4),
        "int32_1": fsl(ints, 1),
        "int32_3_null_items": fsl(null_ints, 3),
        "int8_5_null_items": fsl(lambda rng, n: holes(cast("int8")(rng, n), rng), 5),
        "timestamp_2": fsl(lambda rng, n: cast("int64")(rng, n).view(pa.timestamp("us", "UTC")), 2),
        "decimal_2": fsl(lambda rng, n: ints(rng, n).cast(pa.decimal128(12, 2)), 2),
        "date32_2": fsl(lambda rng, n: ints(rng, n).view(pa.date32()), 2),
        "nested": fsl(fsl(floats, 2), 3),
    }
    wide = {
        "float32_64": fsl(floats, 64),
        "float32_128": fsl(floats, 128),
        "uint8_256": fsl(cast("uint8"), 256),
        "float32_100_null_items": fsl(lambda rng, n: holes(floats(rng, n), rng), 100),
        "float64_zstd_64": fsl(cast("float64"), 64),
    }
    kinds = [Kind(f"fsl_{name}", make) for name, make in plain.items()]
    kinds += [Kind(f"fsl_{name}", make, wide=True) for name, make in wide.items()]
    fsl_struct = fsl(struct(a=ints, b=floats), 3)
    kinds.append(Kind("fsl_struct", fsl_struct, refused=(*ONLY_22, "2.2/sliced")))
    kinds.append(
        Kind(
            "fsl_struct_null_items",
            fsl(struct(a=null_ints, s=null_words, nulls=0.1), 2),
            refused=(*ONLY_22, "2.2/sliced"),
        )
    )
    refused = ("2.0", *(f"{v}/{p}" for v in ("2.1", "2.2") for p in NO_VALUES))
    kinds.append(Kind("fsl_string", fsl(words, 2), refused=refused))
    return kinds


def lists() -> list[Kind]:
    pair = struct(a=null_ints, s=null_words)
    plain: dict[str, Make] = {
        "int32": listed(ints),
        "int32_null_items": listed(null_ints),
        "int32_all_empty": lambda _, n: pa.array([[]] * n, pa.list_(pa.int32())),
        "int32_items_all_null": listed(lambda _, n: pa.nulls(n, pa.int32())),
        "int32_one_item": lambda rng, n: pa.ListArray.from_arrays(
            pa.array(np.arange(n + 1, dtype="int32")), ints(rng, n)
        ),
        "bool": listed(lambda rng, n: pa.array(rng.random(n) < 0.5)),
        "float64": listed(lambda rng, n: pa.array(rng.standard_normal(n))),
        "string": listed(null_words),
        "binary": listed(lambda rng, n: words(rng, n).cast(pa.binary())),
        "large_string": listed(lambda rng, n: null_words(rng, n).cast(pa.large_string())),
        "dictionary": listed(
            lambda rng, n: pa.array(
                rng.choice(np.array(["a", "bb", "ccc"], object), n), pa.string()
            ).dictionary_encode()
        ),
        "struct_dictionary": listed(struct(d=lambda rng, n: words(rng, n).dictionary_encode(), a=ints), 2),
        "list": listed(listed(null_ints, nulls=0.1)),
        "list_list_string": listed(listed(listed(null_words, 3, nulls=0.1), 3), 3),
        "struct": listed(pair),
        "null_struct": listed(struct(a=null_ints, s=null_words, nulls=0.2)),
        "struct_list": listed(struct(a=ints, l=listed(null_words, 3, nulls=0.2), nulls=0.2)),
        "fsl": listed(fsl(floats, 4)),
        "decimal": listed(lambda rng, n: ints(rng, n).cast(pa.decimal128(12, 2))),
        "timestamp": listed(lambda rng, n: ints(rng, n).cast(pa.int64()).view(pa.timestamp("us"))),
    }
    no_20 = {"null_struct", "struct_list"}
    kinds = [Kind(f"list_{k}", make, refused=_NULL_STRUCT if k in no_20 else ()) for k, make in plain.items()]
    kinds += [
        Kind("large_list_float64", listed(lambda rng, n: pa.array(rng.standard_normal(n)), large=True)),
        Kind("large_list_string", listed(null_words, large=True)),
        Kind("large_list_struct", listed(pair, large=True)),
        Kind("list_large_list", listed(listed(ints, large=True, nulls=0.2))),
        Kind("list_long_string", listed(long_words, 3), wide=True),
        Kind("list_fsl_128", listed(fsl(floats, 128), 3), wide=True),
        Kind("list_int32_long", listed(null_ints, 3000), wide=True),
        Kind("list_int32_few_huge", few_huge, wide=True),
    ]
    return kinds


def few_huge(rng: Rng, n: int) -> pa.Array:
    """One list in fifty is far longer than a chunk, the others are empty."""
    ends = np.cumsum([0, *(9000 if i % 50 == 7 else 0 for i in range(n))])
    return pa.ListArray.from_arrays(pa.array(ends.astype("int32")), null_ints(rng, int(ends[-1])))


def structs() -> list[Kind]:
    deep = struct(x=null_ints, y=struct(p=null_words, q=struct(r=null_ints, nulls=0.2), nulls=0.2))
    return [
        Kind("struct_flat", struct(a=ints, s=words), refused=NO_STRUCT_NULLS),
        Kind("struct_null_children", struct(a=null_ints, s=null_words), refused=NO_STRUCT_NULLS),
        Kind("struct_deep", deep, refused=("2.0", "2.1/sliced", "2.2/sliced")),
        Kind("struct_list", struct(l=listed(null_ints, nulls=0.2), v=fsl(floats, 4)), refused=NO_STRUCT_NULLS),
        Kind(
            "struct_list_struct_list",
            struct(l=listed(struct(m=listed(null_words, 3, nulls=0.2), k=ints, nulls=0.1), nulls=0.1)),
            refused=("2.0",),
        ),
        Kind("struct_null_child_type", struct(a=ints, z=lambda _, n: pa.nulls(n)), refused=NO_STRUCT_NULLS),
        Kind("struct_one_child", struct(only=null_words), refused=NO_STRUCT_NULLS),
        Kind("struct_all_null_child", struct(a=lambda _, n: pa.nulls(n, pa.string()), b=ints), refused=NO_STRUCT_NULLS),
        Kind("struct_empty", lambda _, n: pa.array([{}] * n, pa.struct([])), duckdb=False, refused=NO_NULLS),
        Kind(
            "struct_dictionary",
            struct(d=lambda rng, n: words(rng, n).dictionary_encode(), a=ints),
            refused=NO_STRUCT_NULLS,
        ),
        Kind("struct_wide_vector", struct(v=fsl(floats, 128), s=long_words), wide=True, refused=NO_STRUCT_NULLS),
    ]


def maps() -> list[Kind]:
    text = mapped(lambda i: f"key {i}", pa.string(), null_ints)
    number = mapped(lambda i: i * 3, pa.int64(), struct(a=null_ints, s=words, nulls=0.2))
    return [
        Kind("map_string_int32", text, refused=ONLY_22),
        Kind("map_int64_struct", number, refused=ONLY_22),
        Kind(
            "map_string_list", mapped(lambda i: str(i), pa.string(), listed(null_words, 3, nulls=0.1)), refused=ONLY_22
        ),
        Kind("list_map", listed(text, 3, nulls=0.1), refused=ONLY_22),
        Kind("struct_map", struct(m=text, a=ints), refused=ONLY_22),
    ]


def packed() -> list[Kind]:
    metadata = {"lance-encoding:packed": "true"}
    fixed = struct(a=ints, b=floats, c=lambda rng, n: pa.array(rng.integers(0, 255, n).astype("uint8")))
    return [
        Kind("packed_fixed", fixed, metadata, refused=NO_NULLS),
        Kind("packed_by_old_key", fixed, {"packed": "TRUE"}, refused=NO_NULLS),
        Kind("packed_wide", struct(a=ints, v=fsl(floats, 80)), metadata, wide=True, refused=PACKED_FSL),
        Kind("packed_vector", struct(a=ints, v=fsl(floats, 4)), metadata, refused=PACKED_FSL),
        Kind("packed_string", struct(a=ints, s=words, t=words), metadata, refused=PACKED_22),
        Kind(
            "packed_binary_large",
            struct(a=ints, s=lambda rng, n: words(rng, n).cast(pa.large_binary())),
            metadata,
            refused=PACKED_22,
        ),
        Kind("list_packed", listed(fixed, 4), metadata, refused=("2.0",)),
    ]


def blob_columns() -> list[Kind]:
    def payload(rng: Rng, n: int) -> list[bytes]:
        return [rng.bytes(int(k)) for k in rng.integers(0, 3000, n)]

    return [
        Kind(
            "blob_v1",
            lambda rng, n: pa.array(payload(rng, n), pa.large_binary()),
            {"lance-encoding:blob": "true"},
            wide=True,
        ),
        Kind(
            "blob_v2",
            lambda rng, n: lance.blob_array(payload(rng, n)),
            wide=True,
            refused=(*ONLY_22, "2.0/empty", "2.1/empty"),
        ),
    ]
