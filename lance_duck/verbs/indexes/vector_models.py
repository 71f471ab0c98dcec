"""Models that are trained once and shared by separately built segments of a vector index.

`IndicesBuilder` corresponds to pylance's class.

A model is stored as a Lance file in pylance's format: one column with a row per vector, and other properties in the
schema metadata.

    IvfModel  column "centroids": (partitions, dim)       metadata: distance_type
    PqModel   column "codebook": (2 ** num_bits, dim)     metadata: num_subvectors, num_bits
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import checked_calls
from lance_duck.errors import (
    CorruptError,
    IndexNotFoundError,
    InvalidInputError,
    NotIndexableError,
    UnsupportedError,
)
from lance_duck.file import LanceFileReader, LanceFileWriter
from lance_duck.index.catalog import catalog
from lance_duck.index.kind import BuildOptions
from lance_duck.index.search import open_index
from lance_duck.index.vector.build import number_type, spill_vectors
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.multivectors import is_multivector
from lance_duck.index.vector.spill import Spill
from lance_duck.index.vector.training.index_spec import VectorSpec
from lance_duck.index.vector.training.model import Model
from lance_duck.index.vector.training.train import train
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.indexes.describe import segments_named
from lance_duck.verbs.indexes.rows import column_path, index_rows, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class IvfModel:
    """Centroids of an IVF index.

    Attributes:
        centroids: fixed_size_list<float>[dim], one per partition. Accepted by `ivf_centroids=`.
        distance_type: "l2", "cosine", "dot" or "hamming".
    """

    centroids: pa.FixedSizeListArray
    distance_type: str

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.centroids)

    def __repr__(self) -> str:
        return f"<IvfModel of {self.num_partitions} partitions, {self.distance_type}>"

    def save(self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model to a Lance file. Raises StoreError."""
        _write(uri, "centroids", self.centroids, {"distance_type": self.distance_type}, storage_options)

    @classmethod
    def load(cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Self:
        """Read a model written by this package or pylance. Raises NotFoundError or CorruptError."""
        centroids, facts = _read(uri, "centroids", ("distance_type",), storage_options)
        return cls(centroids, facts["distance_type"])


@dataclass(frozen=True, eq=False, repr=False)
class PqModel:
    """Codebook of product quantization.

    Attributes:
        num_subvectors: Number of sub-vectors.
        codebook: fixed_size_list<float>[dim], 2 ** num_bits rows. Contains the codebook of each sub-vector, one after
            the other. Accepted by `pq_codebook=` together with `num_sub_vectors=`.
        num_bits: Number of bits per sub-vector code.
    """

    num_subvectors: int
    codebook: pa.FixedSizeListArray
    num_bits: int = 8

    @property
    def dimension(self) -> int:
        """Dimension of a vector."""
        return int(self.codebook.type.list_size)

    def __repr__(self) -> str:
        return f"<PqModel of {self.num_subvectors} sub-vectors, {self.num_bits} bits>"

    def save(self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model to a Lance file. Raises StoreError."""
        facts = {"num_subvectors": str(self.num_subvectors), "num_bits": str(self.num_bits)}
        _write(uri, "codebook", self.codebook, facts, storage_options)

    @classmethod
    def load(cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Self:
        """Read a model written by this package or pylance. Raises NotFoundError or CorruptError."""
        codebook, facts = _read(uri, "codebook", ("num_subvectors",), storage_options)
        parts, bits = facts["num_subvectors"], facts.get("num_bits", "8")
        if not (parts.isdecimal() and bits.isdecimal()):
            raise CorruptError(
                "invalid metadata of a model", where=os.fspath(uri), expected="numbers", found=str(facts)
            )
        return cls(int(parts), codebook, int(bits))


@checked_calls
class IndicesBuilder:
    """Trains a model shared by all segments of a vector index, for use with `create_index_uncommitted`.

    Args:
        dataset: The table. Training reads the dataset's current version.
        column: Dotted path of the vector column.

    Raises:
        UnknownColumnError: The column does not exist.
        UnsupportedError: The column does not contain vectors, or contains several per row.
    """

    def __init__(self, dataset: TableMethods, column: str) -> None:
        self.dataset = dataset
        schema = dataset.handle.snapshot.schema
        self.column = column_path(schema, column)
        self._type = schema.by_path(self.column).storage_type
        if is_multivector(self._type):
            raise UnsupportedError(
                "an index on several vectors per row cannot be built from segments", where=f"column {self.column}"
            )
        VectorSpec.of({"index_type": "IVF_FLAT", "metric": _any_metric(self._type)}, self._type)

    def train_ivf(
        self,
        num_partitions: int | None = None,
        *,
        distance_type: str = "l2",
        sample_rate: int = 256,
        max_iters: int = 50,
        fragment_ids: Iterable[int] | None = None,
    ) -> IvfModel:
        """Train the centroids of the partitions.

        Args:
            num_partitions: Number of partitions. Defaults to the square root of the row count.
            distance_type: "l2", "cosine", "dot", or "hamming" for uint8 vectors.
            sample_rate: Number of training vectors per partition.
            max_iters: Maximum number of training rounds.
            fragment_ids: Ids of the fragments to read. Defaults to all.

        Raises:
            InvalidInputError: An argument is invalid, or there are too few vectors.
        """
        ids = self._fragments(fragment_ids)
        rows = rows_of(self.dataset.handle.snapshot, ids)
        count = max(1, round(math.sqrt(rows))) if num_partitions is None else num_partitions
        parameters = {"index_type": "IVF_FLAT", "metric": distance_type, "num_partitions": count}
        model = self._trained({**parameters, "sample_rate": sample_rate, "max_iters": max_iters}, ids)
        return IvfModel(_vectors(model.centroids), model.metric)

    def train_pq(
        self,
        ivf_model: IvfModel,
        num_subvectors: int | None = None,
        *,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Iterable[int] | None = None,
    ) -> PqModel:
        """Train a codebook on the residuals of the vectors from their centroids.

        Args:
            ivf_model: The partitions.
            num_subvectors: Number of sub-vectors. By default, it depends on the dimension.
            sample_rate: Number of training vectors per code.
            max_iters: Maximum number of training rounds.
            num_bits: Number of bits per sub-vector code: 4 or 8.
            fragment_ids: Ids of the fragments to read. Defaults to all.

        Raises:
            InvalidInputError: An argument is invalid, or there are too few vectors.
        """
        parameters = {"index_type": "IVF_PQ", "metric": ivf_model.distance_type, "ivf_centroids": ivf_model.centroids}
        parameters |= {"num_sub_vectors": num_subvectors, "num_bits": num_bits}
        parameters |= {"sample_rate": sample_rate, "max_iters": max_iters}
        model = self._trained(parameters, self._fragments(fragment_ids))
        return PqModel(len(model.codebook), _vectors(model.codebook.reshape(1 << num_bits, -1)), num_bits)

    def prepare_global_ivf_pq(
        self,
        num_partitions: int | None = None,
        num_subvectors: int | None = None,
        *,
        distance_type: str = "l2",
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Iterable[int] | None = None,
    ) -> dict[str, pa.FixedSizeListArray]:
        """Train centroids and a codebook, and return them as `create_index_uncommitted` arguments.

        The result has the keys ivf_centroids and pq_codebook. See `train_ivf` and `train_pq` for the parameters.
        """
        ids = self._fragments(fragment_ids)
        rounds = {"sample_rate": sample_rate, "max_iters": max_iters}
        ivf = self.train_ivf(num_partitions, distance_type=distance_type, fragment_ids=ids, **rounds)
        pq = self.train_pq(ivf, num_subvectors, num_bits=num_bits, fragment_ids=ids, **rounds)
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}

    def _fragments(self, fragment_ids: Iterable[int] | None) -> list[int]:
        present = self.dataset.handle.snapshot.fragments.ids()
        ids = present if fragment_ids is None else sorted(fragment_ids)
        unknown = sorted(set(ids) - set(present))
        if unknown:
            raise InvalidInputError("fragment_ids", expected="fragments of the table", found=unknown)
        return ids

    def _trained(self, parameters: Mapping[str, Any], fragment_ids: Iterable[int]) -> Model:
        spec = VectorSpec.of(parameters, self._type)
        snapshot = self.dataset.handle.snapshot
        with Spill() as spill, index_rows(snapshot, self.column, VECTOR, fragment_ids) as rows:
            vectors, _ = spill_vectors(rows, spec.metric, BuildOptions(), spill)
            if not len(vectors):
                raise InvalidInputError(
                    "the column does not contain vectors to train with", where=f"column {self.column}"
                )
            return train(spec, vectors, number_type(self._type.value_type))


def ivf_model(snapshot: Snapshot, name: str) -> IvfModel | None:
    """Return the centroids of an index, or None if it does not have a usable segment.

    Raises:
        IndexNotFoundError: The index does not exist.
        NotIndexableError: The index is not a vector index.
        LanceDuckError: Its newest segment is damaged.
    """
    segments_named(snapshot, name)
    indexes = [index for index in catalog(snapshot).named(name) if index.segments]
    if any(index.kind is not VECTOR for index in indexes):
        raise NotIndexableError(
            f"index {name!r} does not have centroids", where=snapshot.uri, expected="a vector index"
        )
    segments = [segment for index in indexes for segment in index.segments if segment.metadata.files]
    if not segments:
        return None
    stored: Any = open_index(snapshot, segments[-1])
    return IvfModel(_vectors(stored.files.centroids), stored.files.metric)


def vector_index_of(snapshot: Snapshot, path: str) -> str:
    """Return the name of the first vector index over a column. Raises IndexNotFoundError."""
    names = (index.name for index in catalog(snapshot) if index.kind is VECTOR and index.path == path)
    name = next(names, None)
    if name is None:
        raise IndexNotFoundError(f"column {path!r} does not have a vector index", where=snapshot.uri)
    return name


def _any_metric(type_: pa.DataType) -> str:
    is_bytes = pa.types.is_fixed_size_list(type_) and pa.types.is_uint8(type_.value_type)
    return "hamming" if is_bytes else "l2"


def _vectors(numbers: NDArray[Any]) -> pa.FixedSizeListArray:
    items = pa.array(np.ascontiguousarray(numbers).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(items, numbers.shape[1])


def _write(
    uri: str | os.PathLike[str],
    name: str,
    values: pa.Array,
    facts: Mapping[str, str],
    options: Mapping[str, str] | None,
) -> None:
    schema = pa.schema([pa.field(name, values.type)], dict(facts))
    with LanceFileWriter(os.fspath(uri), schema, storage_options=options) as writer:
        writer.write_batch(pa.record_batch([values], schema=schema))


def _read(
    uri: str | os.PathLike[str], name: str, facts: Iterable[str], options: Mapping[str, str] | None
) -> tuple[pa.FixedSizeListArray, dict[str, str]]:
    table = LanceFileReader(os.fspath(uri), options).read_all().to_table()
    metadata = {k.decode(): v.decode(errors="replace") for k, v in (table.schema.metadata or {}).items()}
    is_model = name in table.schema.names and pa.types.is_fixed_size_list(table.schema.field(name).type)
    if not is_model or not all(fact in metadata for fact in facts):
        raise CorruptError("not a model of a vector index", where=os.fspath(uri), expected=f"a column {name!r}")
    return table.column(name).combine_chunks(), metadata
