"""Single-file segments compared number by number, and damaged in every part."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.coarse_codes import rounding_error

from lance_duck.errors import LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.index.files import SegmentReader
from lance_duck.index.kind import Details
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.one_file import vector_files
from lance_duck.index.vector.search.contract import Probe
from lance_duck.store import open_store
from lance_duck.wire.pb import index_pb2

DIM, PARTS, LENGTHS = 8, 4, [7, 0, 13]
METRICS = {"l2": 0, "cosine": 1, "dot": 2}
Change = Callable[[index_pb2.OneFileSegment], None]


class Segment:
    """A segment of three partitions in plain arrays, and its bytes."""

    def __init__(self, metric: str = "l2", bits: int = 8, *, plain: bool = False) -> None:
        rng = np.random.default_rng(bits)
        self.metric, self.bits = metric, bits
        self.centroids = rng.standard_normal((3, DIM)).astype("f4")
        self.codebook = rng.standard_normal((PARTS, 1 << bits, DIM // PARTS)).astype("f4")
        self.codes = rng.integers(0, 256, (20, PARTS * bits // 8), np.uint8)
        self.rows = rng.permutation(20).astype("<u8")
        self.message = index_pb2.OneFileSegment(name="v_idx", columns=["v"])
        vectors = self.message.vectors
        vectors.dimension, vectors.metric_type = DIM, METRICS[metric]  # type: ignore[assignment]
        ivf, pq = vectors.steps.add().ivf, vectors.steps.add().pq
        size = self.codes.shape[1] + 8
        ivf.offsets.extend([0, 0, 7 * size])
        ivf.lengths.extend(LENGTHS)
        pq.num_bits, pq.num_sub_vectors, pq.dimension = bits, PARTS, DIM
        if plain:
            ivf.centroids.extend(self.centroids.ravel().tolist())
            pq.codebook.extend(self.codebook.ravel().tolist())
        else:
            ivf.centroids_tensor.CopyFrom(tensor(self.centroids))
            pq.codebook_tensor.CopyFrom(tensor(self.codebook.reshape(-1, DIM // PARTS)))

    def data(self, change: Change | None = None, footer: tuple[int, int, int, bytes] | None = None) -> bytes:
        if change is not None:
            change(self.message)
        body = b""
        for codes, rows in ((self.codes[:7], self.rows[:7]), (self.codes[7:], self.rows[7:])):
            body += codes.tobytes() + rows.tobytes()
        message = self.message.SerializeToString()
        end = struct.pack("<QHH4s", *(footer or (len(body), 0, 1, b"LANC")))
        return body + struct.pack("<I", len(message)) + message + end

    def distances(self, query: np.ndarray) -> np.ndarray:
        """The distances of all rows by position, as the codes have them."""
        query = query / np.linalg.norm(query) if self.metric == "cosine" else query
        found = []
        for position, row in enumerate(self.codes.tolist()):
            numbers = row if self.bits == 8 else [half for byte in row for half in (byte & 15, byte >> 4)]
            vector = np.concatenate([self.codebook[part, number] for part, number in enumerate(numbers)])
            vector = vector + self.centroids[0 if position < 7 else 2] * (self.metric != "dot")
            square = ((vector - query) ** 2).sum()
            found.append({"l2": square, "cosine": square / 2, "dot": 1 - vector @ query}[self.metric])
        return np.array(found)


def tensor(values: np.ndarray) -> index_pb2.Tensor:
    return index_pb2.Tensor(data_type=index_pb2.Tensor.FLOAT32, shape=values.shape, data=values.tobytes())


def written(folder: Path, data: bytes) -> SegmentReader:
    (folder / "index.idx").write_bytes(data)
    return SegmentReader(open_store(str(folder.parent)), folder.name)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_equal_those_of_the_codes(metric: str, bits: int, plain: bool, tmp_path: Path) -> None:
    segment = Segment(metric, bits, plain=plain)
    index = VECTOR.open(written(tmp_path, segment.data()), pa.list_(pa.float32(), DIM), Details(0))
    assert index.rows().tolist() == segment.rows.tolist()
    query = np.random.default_rng(3).standard_normal(DIM).astype("f4")
    hits = index.search(query[None], 20, None, Probe(3))
    expected = segment.distances(query)
    assert bits == 4 or hits.positions[0].tolist() == np.argsort(expected).tolist()
    assert sorted(hits.positions[0].tolist()) == list(range(20))
    filled = segment.centroids[[0, 2]]
    error = 1e-4 + (rounding_error(segment.codebook, filled, metric, query[None]) if bits == 4 else 0)
    assert hits.distances[0] == pytest.approx(expected[hits.positions[0]], rel=1e-4, abs=error)


def shorter_codebook(message: index_pb2.OneFileSegment) -> None:
    codebook = message.vectors.steps[1].pq.codebook_tensor
    codebook.shape[0] -= 1
    codebook.data = codebook.data[: -4 * DIM // PARTS]


def one_step(message: index_pb2.OneFileSegment) -> None:
    del message.vectors.steps[1]


def bad_numbers(message: index_pb2.OneFileSegment) -> None:
    message.vectors.steps[0].ivf.centroids_tensor.data = b"\xff" * 4 * 3 * DIM


CHANGES: dict[str, Change] = {
    "dimension 0": lambda m: setattr(m.vectors, "dimension", 0),
    "dimension too large": lambda m: setattr(m.vectors, "dimension", 1 << 30),
    "another dimension": lambda m: setattr(m.vectors, "dimension", 16),
    "hamming": lambda m: setattr(m.vectors, "metric_type", 3),
    "a metric that nobody knows": lambda m: setattr(m.vectors, "metric_type", 77),
    "5 bits": lambda m: setattr(m.vectors.steps[1].pq, "num_bits", 5),
    "no parts": lambda m: setattr(m.vectors.steps[1].pq, "num_sub_vectors", 0),
    "3 parts": lambda m: setattr(m.vectors.steps[1].pq, "num_sub_vectors", 3),
    "a rotation": lambda m: setattr(m.vectors.steps[0], "transform", b"x"),
    "one step": one_step,
    "a codebook that is too short": shorter_codebook,
    "centroids that are no numbers": bad_numbers,
    "lengths without offsets": lambda m: m.vectors.steps[0].ivf.lengths.append(1),
    "a partition that ends after the rows": lambda m: m.vectors.steps[0].ivf.lengths.__setitem__(2, 14),
    "a huge partition": lambda m: m.vectors.steps[0].ivf.lengths.__setitem__(2, 2**32 - 1),
    "a partition that begins after the rows": lambda m: m.vectors.steps[0].ivf.offsets.__setitem__(2, 2**64 - 1),
    "partitions that overlap": lambda m: m.vectors.steps[0].ivf.lengths.__setitem__(0, 20),
}


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_messages_are_rejected(name: str, tmp_path: Path) -> None:
    data = Segment().data(CHANGES[name])
    with pytest.raises(LanceDuckError):
        vector_files(written(tmp_path, data)).rows()


@pytest.mark.parametrize(
    "footer",
    [(0, 0, 1, b"LANX"), (1 << 62, 0, 1, b"LANC"), (0, 0, 1, b"LANC"), (240, 0, 2, b"LANC"), (240, 2, 2, b"LANC")],
)
def test_invalid_footers_are_rejected(footer: Any, tmp_path: Path) -> None:
    with pytest.raises(LanceDuckError):
        vector_files(written(tmp_path, Segment().data(footer=footer)))


def test_graphs_of_that_age_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="graphs of before 2024"):
        vector_files(written(tmp_path, Segment().data(footer=(0, 0, 2, b"LANC"))))


def test_a_segment_without_files_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        vector_files(SegmentReader(open_store(str(tmp_path)), "nowhere"))


def test_changed_and_truncated_files_decode_or_raise_an_error(tmp_path: Path) -> None:
    whole = Segment().data()
    rng = np.random.default_rng(0)
    for length in range(0, len(whole), 97):
        with pytest.raises(LanceDuckError):
            vector_files(written(tmp_path, whole[:length])).rows()
    for _ in range(150):
        data = bytearray(whole)
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        try:
            files = vector_files(written(tmp_path, bytes(data)))
            assert len(files.rows()) == files.num_rows <= len(data) // 8
            assert [len(codes) for codes in files.codes(range(3))] == files.partitions.lengths.tolist()
        except LanceDuckError:
            continue
