from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from unit.index.vector.written import Made, clustered, made, tensor

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.index.files import SegmentReader
from lance_duck.index.vector.one_file import vector_files
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.wire.pb import index_pb2


def test_an_opened_segment_reports_kind_metric_and_rows(tmp_path: Path) -> None:
    case = made("PQ", "cosine", bits=4)
    files = case.open(tmp_path)
    assert (files.kind, files.storage, files.metric, files.dim) == ("IVF_PQ", "PQ", "cosine", 16)
    assert (files.num_rows, files.num_partitions, files.bits, files.code_width) == (600, 9, 4, 2)
    assert files.partitions.lengths.tolist() == case.written.lengths
    np.testing.assert_array_equal(files.centroids, case.written.centroids)
    np.testing.assert_array_equal(files.codebook, case.written.codebook)
    np.testing.assert_array_equal(files.rows(), case.written.rows)
    assert files.rows() is files.rows()
    assert not files.has_graphs


@pytest.mark.parametrize("storage", ["FLAT", "SQ", "PQ"])
def test_codes_can_be_read_by_partition_and_by_row(storage: str, tmp_path: Path) -> None:
    case = made(storage)
    files = case.open(tmp_path)
    found = files.codes([4, 8, 0])
    parts = np.split(case.written.codes, np.cumsum(case.written.lengths)[:-1])
    for codes, partition in zip(found, (4, 8, 0), strict=True):
        np.testing.assert_array_equal(codes, parts[partition])
        assert codes.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_float16_and_float64_files_are_read(dtype: type, tmp_path: Path) -> None:
    case = made("FLAT")
    case.written.codes = case.written.codes.astype(dtype)
    case.written.centroids = case.written.centroids.astype(dtype)
    files = case.open(tmp_path)
    assert files.centroids.dtype == np.float32
    np.testing.assert_array_equal(np.vstack(files.codes(range(9))), case.written.codes.astype(np.float32))
    hits = IvfIndex(files).search(case.written.codes[5:6].astype(np.float32), 1, None, Probe())
    assert hits.positions.tolist() == [[5]]


def _lengths(case: Made) -> None:
    case.written.lengths[0] += 1


def _overlap(case: Made) -> None:
    case.written.offsets = [0, 1, *np.cumsum(case.written.lengths)[1:-1].tolist()]


def _beyond(case: Made) -> None:
    case.written.offsets = [0, *np.cumsum(case.written.lengths)[:-1].tolist()]
    case.written.offsets[3] = 2**63


def _short(case: Made) -> None:
    case.written.lengths[0] -= 1


def _fewer(case: Made) -> None:
    case.written.centroids = case.written.centroids[:-1]


def _infinite(case: Made) -> None:
    case.written.centroids[0, 0] = np.inf


def _bytes(case: Made) -> None:
    case.written.centroids = case.written.centroids.astype(np.uint8)


def _metadata(**changes: object) -> Callable[[Made], None]:
    def change(case: Made) -> None:
        case.written.metadata = {**case.written.metadata, **changes}

    return change


def _index(**changes: object) -> Callable[[Made], None]:
    return lambda case: case.written.index.update(changes)


def _text(**changes: str) -> Callable[[Made], None]:
    return lambda case: case.written.texts.update(changes)


def _book(case: Made) -> None:
    assert case.written.codebook is not None
    case.written.codebook = case.written.codebook[:, :128]


def _wild_book(case: Made) -> None:
    assert case.written.codebook is not None
    case.written.codebook[0, 0, 0] = np.nan


def _width(case: Made) -> None:
    case.written.codes = np.hstack([case.written.codes, case.written.codes])


BROKEN = [
    *(("FLAT", change) for change in (_lengths, _overlap, _beyond, _short, _fewer, _infinite, _bytes, _width)),
    *(("FLAT", _metadata(dim=d)) for d in (15, 17, -1, 0, "16", None, True, 2**70, 16.0)),
    *(("FLAT", _index(distance_type=m)) for m in ("cosine", "nearby", None, 3)),
    ("FLAT", _index(type=7)),
    *(("FLAT", _text(storage_metadata=t)) for t in ("", "[", "[]", "{}", "[3]", '["[]"]', "[" * 100_000)),
    *(("FLAT", _text(**{"lance:ivf": t})) for t in ("0", "7", "-1", "x", "", "9" * 30)),
    *(("SQ", _metadata(num_bits=b)) for b in (4, 16, None)),
    *(("SQ", _metadata(bounds=b)) for b in (None, {}, {"start": 0}, {"start": "0", "end": 1})),
    *(("SQ", _metadata(bounds={"start": s, "end": 1})) for s in (float("nan"), float("inf"), 10**400)),
    *(("PQ", _metadata(nbits=b)) for b in (4, 5, 16, 0, None)),
    *(("PQ", _metadata(num_sub_vectors=m)) for m in (0, 3, 8, 17, 2**40)),
    *(("PQ", _metadata(codebook_position=p)) for p in (0, 1, 3, 2**40, None)),
    ("PQ", _metadata(transposed="yes")),
    *(("PQ", change) for change in (_book, _wild_book, _width)),
]


@pytest.mark.parametrize(("storage", "change"), BROKEN)
def test_contradictory_files_are_corrupt(storage: str, change: Callable[[Made], None], tmp_path: Path) -> None:
    case = made(storage, rows=300)
    change(case)
    with pytest.raises((CorruptError, UnsupportedError)):
        case.open(tmp_path)


@pytest.mark.parametrize(
    "ivf",
    [
        b"\xff\xff\xff",
        b"",
        index_pb2.IVF(offsets=[0], lengths=[0]).SerializeToString(),
        index_pb2.IVF(centroids_tensor=index_pb2.Tensor(data_type=2, shape=[9, 16])).SerializeToString(),
        index_pb2.IVF(centroids_tensor=index_pb2.Tensor(data_type=2, shape=[2**31, 2**31])).SerializeToString(),
        index_pb2.IVF(centroids_tensor=index_pb2.Tensor(data_type=2, shape=[0, 2**31])).SerializeToString(),
        index_pb2.IVF(centroids_tensor=index_pb2.Tensor(data_type=2, shape=[])).SerializeToString(),
        index_pb2.IVF(centroids_tensor=index_pb2.Tensor(data_type=6, shape=[0, 16])).SerializeToString(),
        index_pb2.IVF(centroids_tensor=tensor(clustered(3, 16)[0])).SerializeToString(),
    ],
)
def test_centroids_that_do_not_match_the_codes_are_rejected(ivf: bytes, tmp_path: Path) -> None:
    with pytest.raises((CorruptError, UnsupportedError)):
        VectorFiles(made("FLAT", rows=100).written.write(tmp_path, ivf=ivf))


def test_unsupported_kinds_and_layouts_are_named(tmp_path: Path) -> None:
    case = made("FLAT", rows=100)
    case.written.index["type"] = "IVF_HNSW_RQ"
    with pytest.raises(UnsupportedError, match="IVF_HNSW_RQ"):
        case.open(tmp_path)
    case.written.index.clear()
    segment = case.written.write(tmp_path)
    (tmp_path / segment.directory / "auxiliary.idx").unlink()
    with pytest.raises(UnsupportedError, match=r"without auxiliary\.idx"):
        vector_files(segment)
    (tmp_path / segment.directory / "index.idx").unlink()
    with pytest.raises(NotFoundError):
        VectorFiles(segment)


@pytest.mark.parametrize("storage", ["FLAT", "SQ", "PQ"])
def test_damaged_files_raise_an_error_or_return_results(storage: str, tmp_path: Path) -> None:
    case = made(storage, rows=300)
    segment = case.written.write(tmp_path)
    rng = np.random.default_rng(5)
    asked = case.decoded[:4]
    refused = 0
    for name in ("index.idx", "auxiliary.idx"):
        path = tmp_path / segment.directory / name
        sound = path.read_bytes()
        for turn in range(60):
            data = bytearray(sound)
            if turn % 6 == 5:
                data = data[: int(rng.integers(0, len(data)))]
            else:
                # The bytes other than codes are at the end.
                for at in rng.integers(max(len(data) - 2000, 0), len(data), 3):
                    data[at] = int(rng.integers(0, 256))
            path.unlink()
            path.write_bytes(bytes(data))
            refused += _is_refused(SegmentReader(segment._store, segment.directory), asked)
            path.unlink()
            path.write_bytes(sound)
    assert refused > 20


def _is_refused(segment: SegmentReader, asked: np.ndarray) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            index = IvfIndex(VectorFiles(segment))
            if index.dim != asked.shape[1]:
                return True
            index.search(asked, 5, None, Probe(nprobes=3))
            index.prewarm()
            json.dumps(index.statistics())
    except LanceDuckError:
        return True
    return False
