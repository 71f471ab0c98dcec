"""Dataset methods for vector indexes."""

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
# pylance's build parameters that do not change the index.
_IDLE: Final = (
    *("index_cache_size", "shuffle_partition_batches", "shuffle_partition_concurrency", "storage_options"),
    *("filter_nan", "streaming_sample_rate", "streaming_coreset_rate", "streaming_refine_passes", "one_pass_ivfpq"),
)
_REFUSED: Final = ("accelerator", "ivf_centroids_file", "precomputed_partition_dataset", "rabitq_model")
_LAYOUT: Final = "V3"


class VectorParameters(TypedDict, total=False):
    """Parameters of vector index kinds, described in `VectorIndexChanges.create_index`."""

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
    """Vector indexes of a table."""

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
        """Build a vector index on a column, for nearest-neighbour searches.

        Default parameters depend on the row count and the dimension. Parameters of other kinds are ignored.

        Args:
            column: Dotted path of the column.
            index_type: Case-insensitive "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or
                "IVF_HNSW_PQ".
            name: Name of the index. Defaults to "{column}_idx".
            metric: Case-insensitive "L2" (alias "euclidean"), "cosine" or "dot". uint8 vectors support only "hamming",
                with IVF_FLAT and IVF_HNSW_FLAT.
            replace: Replace an index of this name over this column.
            num_partitions: Number of IVF partitions.
            ivf_centroids: Pre-trained centroids, as a NumPy or Arrow array of shape (partitions, dim).
            pq_codebook: Pre-trained PQ codebook, shape (sub-vectors, 2 ** num_bits, dim / sub-vectors). Needs
                ivf_centroids.
            num_sub_vectors: Number of PQ sub-vectors. The default is dim / 16 for 8 bits, and dim / 2 for 4 bits.
            accelerator: Rejected: indexes are built by faiss on the CPU.
            index_cache_size: Without effect: all tables share one memory limit for open indexes.
            shuffle_partition_batches: Without effect: rows are sorted into partitions in memory, or in runs on disk.
            shuffle_partition_concurrency: Without effect: see `shuffle_partition_batches`.
            ivf_centroids_file: Rejected.
            precomputed_partition_dataset: Rejected.
            storage_options: Without effect: the table is already open with its own settings.
            filter_nan: Without effect: vectors with NaN are never indexed.
            train: Index all rows. If False, the index covers no rows until `optimize.optimize_indices`.
            fragment_ids: Rejected: see `create_index_uncommitted`.
            index_uuid: UUID of the segment.
            target_partition_size: Desired number of rows per partition, as an alternative to num_partitions.
            skip_transpose: Rejected.
            progress_callback: Called with an `IndexProgress` at each step of the build.
            progress: Called with the number of rows read so far and the total. True prints them to stderr.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.
            parameters: num_bits (PQ: 4 or 8, where 4 is faster and always reranked; RQ: 1 to 9, default 5), m,
                ef_construction, max_level, sample_rate, max_iters. Without effect: streaming_sample_rate,
                streaming_coreset_rate, streaming_refine_passes and one_pass_ivfpq, which control pylance's training.

        Returns:
            This dataset, at the new version.

        Raises:
            UnknownColumnError: The column does not exist.
            NotIndexableError: The column does not contain vectors, or the index kind does not exist.
            IndexExistsError: The name belongs to an index over a different column, or to any index if replace=False.
            InvalidInputError: An argument is invalid, or there are too few vectors to train with.
            UnsupportedError: A rejected argument is set.
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
        """Return the centroids of a vector index. If segments differ, the newest one is used.

        Returns:
            The model, or None if the index does not have a usable segment.

        Raises:
            IndexNotFoundError: The index does not exist.
            NotIndexableError: The index is not a vector index.
        """
        return vector_models.ivf_model(self.handle.snapshot, index_name)

    def centroids(self, *, index_name: str | None = None, column: str | None = None) -> pa.FixedSizeListArray | None:
        """Return the centroids of a vector index, shape (partitions, dim): see `get_ivf_model`.

        Args:
            index_name: Name of the index.
            column: Dotted path of the vector column, to select its first vector index instead of `index_name`.

        Raises:
            IndexNotFoundError: The index does not exist.
            InvalidInputError: Both arguments are None.
        """
        snapshot = self.handle.snapshot
        if index_name is None:
            if column is None:
                raise InvalidInputError(
                    "the call does not name an index", where="centroids", expected="index_name or column"
                )
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
    """Build the `IndexSpec` of an index of any kind. The parameters of vector indexes are checked against the table.

    Args:
        snapshot: Version of the table.
        column: Path of the column.
        index_type: Case-insensitive name of a kind, or an `IndexConfig`.
        parameters: Parameters of the kind, by name.
        options: Options for indexes of any kind.

    Raises:
        UnknownColumnError, NotIndexableError, InvalidInputError, UnsupportedError: See `create_scalar_index` and
            `create_index`.
    """
    if is_vector_kind(index_type):
        return vector_spec(snapshot, column, index_type, parameters, **options)
    return kinds.scalar_spec(column, index_type, parameters, **options)


def is_vector_kind(index_type: Any) -> bool:
    """Return whether a name denotes a vector index, supported or not."""
    return isinstance(index_type, str) and index_type.upper().startswith(("IVF", "HNSW"))


def vector_spec(
    snapshot: Snapshot,
    column: Any,
    index_type: Any,
    parameters: Mapping[str, Any],
    **options: Unpack[kinds.IndexOptions],
) -> kinds.IndexSpec:
    """Build the `IndexSpec` of a vector index, checked against the table. Takes the arguments of `spec_of`.

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
    """Return the parameters that affect the index. Others are only validated."""
    names = {"metric", "index_file_version", "skip_transpose", *_NUMBERS, *_ARRAYS, *_IDLE, *_REFUSED}
    refuse_unknown(sorted(parameters), sorted(names), "a vector index", "parameter")
    for name in _REFUSED:
        if parameters.get(name) is not None:
            raise UnsupportedError(f"{name} is not supported for vector indexes", remedy="leave it out")
    if parameters.get("skip_transpose"):
        raise UnsupportedError("skip_transpose is not supported", remedy="leave it out")
    if parameters.get("index_file_version", _LAYOUT) != _LAYOUT:
        raise UnsupportedError("index_file_version", expected=_LAYOUT, found=repr(parameters["index_file_version"]))
    if parameters.get("pq_codebook") is not None and parameters.get("ivf_centroids") is None:
        raise InvalidInputError(
            "pq_codebook needs ivf_centroids", remedy="pass the centroids that the codebook was trained with"
        )
    settings: dict[str, Any] = {"metric": "l2" if parameters.get("metric") is None else parameters["metric"]}
    settings |= {name: _whole(name, parameters[name]) for name in _NUMBERS if parameters.get(name) is not None}
    return settings | {name: parameters[name] for name in _ARRAYS if parameters.get(name) is not None}


def _whole(name: str, number: Any) -> int:
    """Convert a number to an integer. Whole floats are accepted."""
    if isinstance(number, bool) or not (hasattr(number, "__index__") or isinstance(number, float)):
        raise WrongTypeError(name, expected="a whole number", found=repr(number))
    if isinstance(number, float) and not number.is_integer():
        raise InvalidInputError(name, expected="a whole number", found=number)
    return int(number)
