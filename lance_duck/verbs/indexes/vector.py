"""The methods of a dataset for its vector indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack
from uuid import UUID

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls, did_you_mean, refuse_unknown
from lance_duck.errors import InvalidInputError, NotIndexableError, UnsupportedError, WrongTypeError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck.index.vector import kind, layout
    from lance_duck.index.vector.training import index_spec
    from lance_duck.scan import table_scan, vector_lists
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import create, kinds, rows, vector_models
else:
    kind, layout = lazy.modules(globals(), "lance_duck.index.vector", "kind", "layout")
    vector_lists = lazy.modules(globals(), "lance_duck.scan", "vector_lists")
    table_scan = lazy.modules(globals(), "lance_duck.scan", "table_scan")
    index_spec = lazy.modules(globals(), "lance_duck.index.vector.training", "index_spec")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    create, kinds, rows, vector_models = lazy.modules(
        globals(), "lance_duck.verbs.indexes", "create", "kinds", "rows", "vector_models"
    )

_NUMBERS: Final = (
    *("num_partitions", "target_partition_size", "num_sub_vectors", "num_bits"),
    *("m", "ef_construction", "max_level", "sample_rate", "max_iters"),
)
_ARRAYS: Final = ("ivf_centroids", "pq_codebook")
# Parameters of how pylance builds an index, which do not change the index.
_IDLE: Final = (
    *("index_cache_size", "shuffle_partition_batches", "shuffle_partition_concurrency", "storage_options"),
    *("filter_nan", "streaming_sample_rate", "streaming_coreset_rate", "streaming_refine_passes", "one_pass_ivfpq"),
)
_REFUSED: Final = ("accelerator", "ivf_centroids_file", "precomputed_partition_dataset", "rabitq_model")
_LAYOUT: Final = "V3"


class VectorParameters(TypedDict, total=False):
    """Parameters of kinds of vector indexes, explained by `VectorIndexChanges.create_index`."""

    num_bits: int | None
    m: int | None
    ef_construction: int | None
    max_level: int | None
    sample_rate: int | None
    max_iters: int | None
    streaming_sample_rate: int | None
    streaming_coreset_rate: int | None
    streaming_refine_passes: int | None
    one_pass_ivfpq: bool | None
    index_file_version: str | None


@checked_calls
class VectorIndexChanges(TableMethods):
    """Vector indexes of a table, for a handle on one of its versions."""

    def create_index(
        self,
        column: str | Sequence[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | UUID | None = None,
        *,
        target_partition_size: int | None = None,
        skip_transpose: bool = False,
        progress_callback: Callable[[kinds.IndexProgress], Any] | None = None,
        progress: kinds.Progress | bool | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        **parameters: Unpack[VectorParameters],
    ) -> Self:
        """Build an index over the vectors of a column, for searches of nearest neighbours.

        Parameters that are not given are chosen by the number of rows and the dimension; parameters of other kinds are
        ignored.

        Args:
            column: Dotted path of the column.
            index_type: "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or "IVF_HNSW_PQ",
                in any case.
            name: Name of the index; None for "{column}_idx".
            metric: "L2" (or "euclidean"), "cosine" or "dot", in any case; for vectors of uint8 only "hamming",
                with IVF_FLAT and IVF_HNSW_FLAT.
            replace: Replace an index of this name over this column.
            num_partitions: Number of partitions of the inverted file.
            ivf_centroids: Centroids, (partitions, dim) numbers of numpy or Arrow, instead of trained ones.
            pq_codebook: Codebook of PQ, (sub-vectors, 2 ** num_bits, dim / sub-vectors) numbers; with ivf_centroids.
            num_sub_vectors: Parts that PQ cuts a vector into.
            accelerator: Refused: indexes are built by faiss on the CPU.
            index_cache_size: Without effect: memory of open indexes is limited for all tables together.
            shuffle_partition_batches: Without effect: rows are sorted into partitions in memory, or in runs on disk.
            shuffle_partition_concurrency: Without effect: see `shuffle_partition_batches`.
            ivf_centroids_file: Refused.
            precomputed_partition_dataset: Refused.
            storage_options: Without effect: the table is open, with the settings that it was opened with.
            filter_nan: Without effect: vectors with NaN are never in an index.
            train: Index all rows; False: the index covers no rows until `optimize.optimize_indices`.
            fragment_ids: Refused: see `create_index_uncommitted`.
            index_uuid: UUID of the segment.
            target_partition_size: Desired rows of a partition, instead of num_partitions.
            skip_transpose: Refused.
            progress_callback: Called with an `IndexProgress` at each step of the build.
            progress: Called with the number of rows read so far, and of all rows; True: print them to stderr.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.
            parameters: num_bits (4 or 8 for PQ; 1 to 9 for RQ, by default 5), m, ef_construction, max_level,
                sample_rate, max_iters. Without effect: streaming_sample_rate, streaming_coreset_rate,
                streaming_refine_passes and one_pass_ivfpq, which control how pylance trains.

        Returns:
            This dataset, on the new version.

        Raises:
            UnknownColumnError: The column does not exist.
            NotIndexableError: The column holds no vectors, or there is no such kind of vector index.
            IndexExistsError: An index over another column has the name, or replace=False and any index has it.
            InvalidInputError: An argument is invalid, or there are too few vectors to train with.
            UnsupportedError: An argument is refused.
            CommitConflictError: A conflicting change was committed first, or all retries lost the race.
        """
        if fragment_ids is not None:
            raise InvalidInputError(
                "fragment_ids", where="create_index", remedy="call create_index_uncommitted(…, fragment_ids=…)"
            )
        arguments = {
            **parameters,
            "metric": metric,
            "num_partitions": num_partitions,
            "ivf_centroids": ivf_centroids,
            "pq_codebook": pq_codebook,
            "num_sub_vectors": num_sub_vectors,
            "accelerator": accelerator,
            "ivf_centroids_file": ivf_centroids_file,
            "precomputed_partition_dataset": precomputed_partition_dataset,
            "target_partition_size": target_partition_size,
            "skip_transpose": skip_transpose,
        }
        base = self.handle.base
        options: kinds.IndexOptions = {"name": name, "replace": replace, "train": train}
        options |= {"uuid": kinds.uuid_of(index_uuid), "progress": kinds.progress_of(progress, progress_callback)}
        spec = vector_spec(base, column, index_type, arguments, **options)
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(create.create_index(base, spec, properties)[0])
        return self

    def get_ivf_model(self, index_name: str) -> vector_models.IvfModel | None:
        """Return the partitions of a vector index: those of its newest segment, where segments differ.

        Returns:
            None: the index has no segment that can be used.

        Raises:
            IndexNotFoundError: The index does not exist.
            NotIndexableError: It is no vector index.
        """
        return vector_models.ivf_model(self.handle.snapshot, index_name)

    def centroids(self, *, index_name: str | None = None, column: str | None = None) -> pa.FixedSizeListArray | None:
        """Return the centroids of a vector index, (partitions, dim): see `get_ivf_model`.

        Args:
            index_name: Name of the index.
            column: Dotted path of the vectors, whose first vector index is meant, where no name is given.

        Raises:
            IndexNotFoundError: The index does not exist.
            InvalidInputError: Neither is given.
        """
        snapshot = self.handle.snapshot
        if index_name is None:
            if column is None:
                raise InvalidInputError("an index", where="centroids", expected="index_name or column")
            index_name = vector_models.vector_index_of(snapshot, rows.column_path(snapshot.schema, column))
        model = vector_models.ivf_model(snapshot, index_name)
        return None if model is None else model.centroids


def spec_of(
    snapshot: Snapshot,
    column: Any,
    index_type: Any,
    parameters: Mapping[str, Any],
    **options: Unpack[kinds.IndexOptions],
) -> kinds.IndexSpec:
    """Return the index of any kind that a user wants; a vector index is checked against the table.

    Args:
        snapshot: Version of the table.
        column: Path of the column.
        index_type: Name of a kind, in any case, or an `IndexConfig`.
        parameters: Parameters of the kind, by name.
        options: Options of indexes of any kind.

    Raises:
        UnknownColumnError, NotIndexableError, InvalidInputError, UnsupportedError: See `create_scalar_index` and
            `create_index`.
    """
    if is_vector_kind(index_type):
        return vector_spec(snapshot, column, index_type, parameters, **options)
    return kinds.scalar_spec(column, index_type, parameters, **options)


def is_vector_kind(index_type: Any) -> bool:
    """Return whether a name is that of a vector index, supported or not, or is meant to be."""
    return isinstance(index_type, str) and index_type.upper().startswith(("IVF", "HNSW"))


def vector_spec(
    snapshot: Snapshot,
    column: Any,
    index_type: Any,
    parameters: Mapping[str, Any],
    **options: Unpack[kinds.IndexOptions],
) -> kinds.IndexSpec:
    """Return the vector index that a user wants, checked against the table; arguments are those of `spec_of`.

    Raises:
        UnknownColumnError, NotIndexableError, InvalidInputError, UnsupportedError: See
            `VectorIndexChanges.create_index`.
    """
    path = rows.column_path(snapshot.schema, kinds.one_column(column))
    if not isinstance(index_type, str) or index_type.upper() not in layout.KINDS:
        scalar = f"create_scalar_index({path!r}, {index_type!r}) makes an index of another kind"
        other = None if is_vector_kind(index_type) else scalar
        raise NotIndexableError(
            f"{index_type} is not a supported kind of vector index",
            expected=", ".join(layout.KINDS),
            remedy=did_you_mean(index_type, layout.KINDS) or other,
        )
    kinds.check_indexable(
        snapshot, path, kind.VECTOR, lambda: vector_lists.cast_to_vectors(table_scan.TableScan(snapshot), path)
    )
    settings = {"index_type": index_type.upper(), **_checked(parameters)}
    vectors = index_spec.VectorSpec.of(settings, snapshot.schema.by_path(path).storage_type)
    return kinds.IndexSpec(path, kind.VECTOR, settings, untrained=vectors.details(), **options)


def _checked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that affect the index; the others are only checked."""
    names = {"metric", "index_file_version", "skip_transpose", *_NUMBERS, *_ARRAYS, *_IDLE, *_REFUSED}
    refuse_unknown(sorted(parameters), sorted(names), "a vector index", "parameter")
    for name in _REFUSED:
        if parameters.get(name) is not None:
            raise UnsupportedError(f"{name} of a vector index", remedy="leave it out")
    if parameters.get("skip_transpose"):
        raise UnsupportedError("skip_transpose of a vector index", remedy="leave it out")
    if parameters.get("index_file_version", _LAYOUT) != _LAYOUT:
        raise UnsupportedError("index_file_version", expected=_LAYOUT, found=repr(parameters["index_file_version"]))
    if parameters.get("pq_codebook") is not None and parameters.get("ivf_centroids") is None:
        raise InvalidInputError(
            "pq_codebook without ivf_centroids", remedy="give the centroids that it was trained with"
        )
    settings: dict[str, Any] = {"metric": "l2" if parameters.get("metric") is None else parameters["metric"]}
    settings |= {name: _whole(name, parameters[name]) for name in _NUMBERS if parameters.get(name) is not None}
    return settings | {name: parameters[name] for name in _ARRAYS if parameters.get(name) is not None}


def _whole(name: str, number: Any) -> int:
    """Return a whole number, also from a float."""
    if isinstance(number, bool) or not (hasattr(number, "__index__") or isinstance(number, float)):
        raise WrongTypeError(name, expected="a whole number", found=repr(number))
    if isinstance(number, float) and not number.is_integer():
        raise InvalidInputError(name, expected="a whole number", found=number)
    return int(number)
