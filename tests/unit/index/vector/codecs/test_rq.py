"""RaBitQ codes and rotations compared number by number with the documented layout."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lance_duck.errors import LanceDuckError
from lance_duck.index.vector.codecs.rotation import Rotation, transformed
from lance_duck.index.vector.codecs.rq import Rounding, rabit_bytes, rabit_lists, rounding_of
from lance_duck.index.vector.codecs.rq_codes import blocked_extra, extra_of, packed_signs, signs_of
from lance_duck.index.vector.search.lists import faiss
from lance_duck.index.vector.training.rounded import rounded

ORDER = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]


def packed_one_by_one(signs: np.ndarray) -> bytes:
    rows, width = signs.shape
    out = bytearray()
    for first in range(0, rows - 31, 32):
        for byte in range(width):
            block = [int(row[byte]) for row in signs[first : first + 32]]
            out += bytes(block[p] & 15 | (block[p + 16] & 15) << 4 for p in ORDER)
            out += bytes(block[p] >> 4 | block[p + 16] >> 4 << 4 for p in ORDER)
    left = signs[rows // 32 * 32 :]
    return bytes(out) + b"".join(bytes(int(row[byte]) for row in left) for byte in range(width))


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 100])
def test_sign_codes_are_stored_in_blocks_of_32_rows(rows: int) -> None:
    signs = np.random.default_rng(rows).integers(0, 256, (rows, 5), np.uint8)
    packed = packed_signs(signs)
    assert packed.tobytes() == packed_one_by_one(signs)
    assert np.array_equal(signs_of(packed), signs)


def blocked_one_by_one(numbers: list[int], bits: int) -> bytes:
    """Pack 64 numbers with the given bit width in file order."""
    low = {3: 2, 5: 4, 7: 6}.get(bits, bits)
    out = [0] * (8 * low)
    for number, value in enumerate(numbers):
        part, quarter, of_quarter = value & ((1 << low) - 1), number // 16, number % 16
        if low == 1:
            out[number // 8] |= part << number % 8
        elif low == 2:
            out[of_quarter] |= part << 2 * quarter
        elif low == 4 and bits == 4:
            out[8 * quarter + of_quarter % 8] |= part << 4 * (of_quarter // 8)
        elif low == 4:
            out[16 * (quarter // 2) + of_quarter] |= part << 4 * (quarter % 2)
        elif low == 6 and quarter < 3:
            out[16 * quarter + of_quarter] |= part
        elif low == 6:
            for k in range(3):
                out[16 * k + of_quarter] |= (part >> 2 * k & 3) << 6
        else:
            out[number] = part
    plane = 0
    for number, value in enumerate(numbers if low != bits else []):
        quarter, of_quarter = number // 16, number % 16
        plane |= (value >> low) << (8 * (of_quarter % 8) + 2 * quarter + of_quarter // 8)
    return bytes(out) + (plane.to_bytes(8, "little") if low != bits else b"")


@pytest.mark.parametrize("bits", range(1, 9))
def test_extra_code_bits_are_stored_in_blocks_of_64_numbers(bits: int) -> None:
    dim = 72
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, (3, dim))
    stream = np.packbits((numbers[:, :, None] >> np.arange(bits) & 1).reshape(3, -1), axis=1, bitorder="little")
    column = blocked_extra(stream.astype(np.uint8), dim, bits)
    for row, mine in zip(column, numbers.tolist(), strict=True):
        filled = mine + [0] * (128 - dim)
        assert row.tobytes() == blocked_one_by_one(filled[:64], bits) + blocked_one_by_one(filled[64:], bits)
    assert np.array_equal(extra_of(column, dim, bits), stream)


def rotated_one_by_one(vector: np.ndarray, signs: np.ndarray) -> np.ndarray:
    dim = len(vector)
    size = 2 ** int(np.log2(dim))
    for number in range(4):
        row = signs[number * dim // 8 : (number + 1) * dim // 8]
        vector = np.array([-x if row[i // 8] >> i % 8 & 1 else x for i, x in enumerate(vector)])
        first = 0 if number % 2 == 0 else dim - size
        hadamard = np.array([[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)])
        vector[first : first + size] = hadamard @ vector[first : first + size] / np.sqrt(size)
        if size != dim:
            one, other = vector[: dim // 2], vector[dim // 2 :]
            vector = np.concatenate([one + other, one - other]) / np.sqrt(2)
    return vector


@pytest.mark.parametrize("dim", [8, 24, 64, 96])
def test_a_fast_rotation_has_four_rounds(dim: int) -> None:
    vectors = np.random.default_rng(dim).standard_normal((3, dim)).astype("f4")
    drawn = Rotation.drawn(dim)
    expected = np.stack([rotated_one_by_one(vector.astype("f8"), drawn.parameters) for vector in vectors])
    assert np.allclose(drawn.of(vectors), expected, atol=1e-5)
    assert np.allclose(transformed(vectors, drawn.parameters), expected, atol=1e-5)


def codes_of(rounding: Rounding, rows: np.ndarray) -> np.ndarray:
    """The numbers f of rows, in all their bits."""
    signs = np.unpackbits(rounding.signs(rows), axis=1, bitorder="little")
    further = np.unpackbits(rounding.further(rows), axis=1, bitorder="little").reshape(len(rows), rounding.dim, -1)
    values = (further * (1 << np.arange(rounding.extra))).sum(axis=2)
    return signs * 2.0**rounding.extra + values - (2**rounding.extra - 0.5)


@pytest.mark.parametrize(("bits", "of_residual"), [(1, True), (1, False), (2, False), (5, False), (9, False)])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_distances_equal_the_formula(bits: int, metric: str, of_residual: bool) -> None:
    dim, rng = 64, np.random.default_rng(bits)
    centroid = rng.standard_normal(dim).astype("f4")
    vectors = (centroid + rng.standard_normal((50, dim))).astype("f4")
    vectors[7] = centroid
    query = rng.standard_normal(dim).astype("f4")
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        query /= np.linalg.norm(query)
        centroid /= np.linalg.norm(centroid)
    rounding = Rounding(bits, Rotation.drawn(dim), of_residual, not of_residual)
    rows = rounded(rounding, vectors, centroid[None], np.zeros(50, np.int64), metric)
    assert rows.shape == (50, rounding.width)
    factors = dict(zip(rounding.factors, rounding.factors_of(rows).T.astype("f8"), strict=True))
    tail = "_ex" if rounding.extra else ""
    add, scale, codes = factors[f"__add_factors{tail}"], factors[f"__scale_factors{tail}"], codes_of(rounding, rows)
    along = codes @ (query - centroid) * 2 / np.sqrt(dim) if of_residual else codes @ query
    beyond = -float(query @ centroid) if metric == "dot" else ((query - centroid) ** 2).sum()
    expected = along * scale + add + beyond
    true = 1 - vectors @ query if metric == "dot" else ((vectors - query) ** 2).sum(axis=1)
    assert np.abs(expected - true).max() <= 1.5 * np.abs(true).max() / 2**rounding.extra

    faiss_metric = faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2
    quantizer = faiss.IndexFlat(dim, faiss_metric)
    quantizer.add(centroid[None])
    index = rabit_lists(rounding, 1, quantizer, faiss_metric)
    lists = faiss.ArrayInvertedLists(1, index.code_size)
    index.replace_invlists(lists, False)
    stored, ids = rabit_bytes(rounding, rows, centroid, metric), np.arange(50)
    lists.add_entries(0, 50, faiss.swig_ptr(ids), faiss.swig_ptr(stored))
    index.ntotal = 50
    measured, found = index.search(query[None], 50)
    measured = 1 - measured if metric == "dot" else measured
    assert sorted(found[0].tolist()) == list(range(50))
    spread = np.abs(query - centroid).max() * np.abs(scale[found[0]]) * np.linalg.norm(codes[found[0]], axis=1) / 100
    assert (np.abs(measured[0] - expected[found[0]]) <= spread + 1e-3).all()


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_codes_do_not_depend_on_vector_length(bits: int) -> None:
    rounding, origin = Rounding(bits, Rotation.drawn(16)), np.zeros((1, 16), np.float32)
    vectors = np.random.default_rng(bits).standard_normal((30, 16)).astype(np.float32)
    partitions = np.zeros(30, np.int64)

    def codes(exponent: int) -> np.ndarray:
        with np.errstate(over="ignore"):  # of the factors
            rows = rounded(rounding, np.ldexp(vectors, exponent), origin, partitions, "l2")
        return rows[:, : 2 * bits]

    for exponent in (-120, -70, 64, 70, 120):  # beyond 64, squares are infinite
        assert np.array_equal(codes(exponent), codes(0))


@pytest.mark.parametrize("bits", [1, 4])
def test_packed_columns_return_the_rows(bits: int) -> None:
    rounding = Rounding(bits, Rotation.drawn(24))
    rows = np.random.default_rng(0).integers(0, 256, (45, rounding.width), np.uint8)
    rows[:, 3 * bits :] = np.arange(45 * (rounding.width - 3 * bits), dtype=np.uint8).reshape(45, -1)
    columns = rounding.columns(rows)
    assert [field.name for field in rounding.fields] == sorted(columns, key=[f.name for f in rounding.fields].index)
    assert np.array_equal(rounding.rows(columns, 45), rows)


@pytest.mark.parametrize(
    "changed",
    [
        {"num_bits": 0},
        {"num_bits": 10},
        {"num_bits": True},
        {"packed": False},
        {"query_estimator": "guess"},
        {"query_estimator": "residual"},
        {"rotation_type": "slow"},
        {"fast_rotation_signs": [0] * 11},
        {"fast_rotation_signs": [256] * 12},
        {"fast_rotation_signs": [0.5] * 12},
        {"fast_rotation_signs": None},
        {"rotation_type": None},
        {"rotation_type": "matrix", "rotate_mat_position": "1"},
    ],
)
def test_invalid_metadata_is_rejected(changed: dict[str, Any]) -> None:
    sound = {
        "code_dim": 24,
        "num_bits": 5,
        "packed": True,
        "query_estimator": "raw_query",
        "rotation_type": "fast",
        "fast_rotation_signs": [7] * 12,
    }
    schema = SimpleNamespace(names=["__error_factors"])
    file: Any = SimpleNamespace(path="x", schema=schema, global_buffer=lambda place: b"\xff" * place)
    assert rounding_of(file, sound, 24).bits == 5
    with pytest.raises(LanceDuckError):
        rounding_of(file, sound | changed, 24)
    with pytest.raises(LanceDuckError):
        rounding_of(file, sound, 20)
