from google.protobuf import any_pb2 as _any_pb2
from lance_duck.wire.pb import table_pb2 as _table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VectorMetricType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    L2: _ClassVar[VectorMetricType]
    COSINE: _ClassVar[VectorMetricType]
    DOT: _ClassVar[VectorMetricType]
    HAMMING: _ClassVar[VectorMetricType]
L2: VectorMetricType
COSINE: VectorMetricType
DOT: VectorMetricType
HAMMING: VectorMetricType

class Tensor(_message.Message):
    __slots__ = ("data_type", "shape", "data")
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BFLOAT16: _ClassVar[Tensor.DataType]
        FLOAT16: _ClassVar[Tensor.DataType]
        FLOAT32: _ClassVar[Tensor.DataType]
        FLOAT64: _ClassVar[Tensor.DataType]
        UINT8: _ClassVar[Tensor.DataType]
        UINT16: _ClassVar[Tensor.DataType]
        UINT32: _ClassVar[Tensor.DataType]
        UINT64: _ClassVar[Tensor.DataType]
    BFLOAT16: Tensor.DataType
    FLOAT16: Tensor.DataType
    FLOAT32: Tensor.DataType
    FLOAT64: Tensor.DataType
    UINT8: Tensor.DataType
    UINT16: Tensor.DataType
    UINT32: Tensor.DataType
    UINT64: Tensor.DataType
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data_type: Tensor.DataType
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, data_type: _Optional[_Union[Tensor.DataType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class IVF(_message.Message):
    __slots__ = ("centroids", "offsets", "lengths", "centroids_tensor", "loss")
    CENTROIDS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CENTROIDS_TENSOR_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    centroids: _containers.RepeatedScalarFieldContainer[float]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    centroids_tensor: Tensor
    loss: float
    def __init__(self, centroids: _Optional[_Iterable[float]] = ..., offsets: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ..., centroids_tensor: _Optional[_Union[Tensor, _Mapping]] = ..., loss: _Optional[float] = ...) -> None: ...

class HnswParameters(_message.Message):
    __slots__ = ("max_connections", "construction_ef", "max_level")
    MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    CONSTRUCTION_EF_FIELD_NUMBER: _ClassVar[int]
    MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
    max_connections: int
    construction_ef: int
    max_level: int
    def __init__(self, max_connections: _Optional[int] = ..., construction_ef: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...

class OneFileSegment(_message.Message):
    __slots__ = ("name", "columns", "dataset_version", "index_type", "vectors")
    class Codebook(_message.Message):
        __slots__ = ("num_bits", "num_sub_vectors", "dimension", "codebook", "codebook_tensor")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        NUM_SUB_VECTORS_FIELD_NUMBER: _ClassVar[int]
        DIMENSION_FIELD_NUMBER: _ClassVar[int]
        CODEBOOK_FIELD_NUMBER: _ClassVar[int]
        CODEBOOK_TENSOR_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        num_sub_vectors: int
        dimension: int
        codebook: _containers.RepeatedScalarFieldContainer[float]
        codebook_tensor: Tensor
        def __init__(self, num_bits: _Optional[int] = ..., num_sub_vectors: _Optional[int] = ..., dimension: _Optional[int] = ..., codebook: _Optional[_Iterable[float]] = ..., codebook_tensor: _Optional[_Union[Tensor, _Mapping]] = ...) -> None: ...
    class Step(_message.Message):
        __slots__ = ("ivf", "pq", "transform")
        IVF_FIELD_NUMBER: _ClassVar[int]
        PQ_FIELD_NUMBER: _ClassVar[int]
        TRANSFORM_FIELD_NUMBER: _ClassVar[int]
        ivf: IVF
        pq: OneFileSegment.Codebook
        transform: bytes
        def __init__(self, ivf: _Optional[_Union[IVF, _Mapping]] = ..., pq: _Optional[_Union[OneFileSegment.Codebook, _Mapping]] = ..., transform: _Optional[bytes] = ...) -> None: ...
    class Vectors(_message.Message):
        __slots__ = ("version", "dimension", "steps", "metric_type")
        VERSION_FIELD_NUMBER: _ClassVar[int]
        DIMENSION_FIELD_NUMBER: _ClassVar[int]
        STEPS_FIELD_NUMBER: _ClassVar[int]
        METRIC_TYPE_FIELD_NUMBER: _ClassVar[int]
        version: int
        dimension: int
        steps: _containers.RepeatedCompositeFieldContainer[OneFileSegment.Step]
        metric_type: VectorMetricType
        def __init__(self, version: _Optional[int] = ..., dimension: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[OneFileSegment.Step, _Mapping]]] = ..., metric_type: _Optional[_Union[VectorMetricType, str]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DATASET_VERSION_FIELD_NUMBER: _ClassVar[int]
    INDEX_TYPE_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    dataset_version: int
    index_type: int
    vectors: OneFileSegment.Vectors
    def __init__(self, name: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., dataset_version: _Optional[int] = ..., index_type: _Optional[int] = ..., vectors: _Optional[_Union[OneFileSegment.Vectors, _Mapping]] = ...) -> None: ...

class VectorIndexDetails(_message.Message):
    __slots__ = ("metric_type", "target_partition_size", "hnsw_index_config", "pq", "sq", "rq", "flat", "runtime_hints", "target_num_partitions")
    class ProductQuantization(_message.Message):
        __slots__ = ("num_bits", "num_sub_vectors")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        NUM_SUB_VECTORS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        num_sub_vectors: int
        def __init__(self, num_bits: _Optional[int] = ..., num_sub_vectors: _Optional[int] = ...) -> None: ...
    class ScalarQuantization(_message.Message):
        __slots__ = ("num_bits",)
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        def __init__(self, num_bits: _Optional[int] = ...) -> None: ...
    class RabitQuantization(_message.Message):
        __slots__ = ("num_bits", "rotation_type")
        class RotationType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            FAST: _ClassVar[VectorIndexDetails.RabitQuantization.RotationType]
            MATRIX: _ClassVar[VectorIndexDetails.RabitQuantization.RotationType]
        FAST: VectorIndexDetails.RabitQuantization.RotationType
        MATRIX: VectorIndexDetails.RabitQuantization.RotationType
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        ROTATION_TYPE_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        rotation_type: VectorIndexDetails.RabitQuantization.RotationType
        def __init__(self, num_bits: _Optional[int] = ..., rotation_type: _Optional[_Union[VectorIndexDetails.RabitQuantization.RotationType, str]] = ...) -> None: ...
    class FlatCompression(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class RuntimeHintsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METRIC_TYPE_FIELD_NUMBER: _ClassVar[int]
    TARGET_PARTITION_SIZE_FIELD_NUMBER: _ClassVar[int]
    HNSW_INDEX_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PQ_FIELD_NUMBER: _ClassVar[int]
    SQ_FIELD_NUMBER: _ClassVar[int]
    RQ_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_HINTS_FIELD_NUMBER: _ClassVar[int]
    TARGET_NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    metric_type: VectorMetricType
    target_partition_size: int
    hnsw_index_config: HnswParameters
    pq: VectorIndexDetails.ProductQuantization
    sq: VectorIndexDetails.ScalarQuantization
    rq: VectorIndexDetails.RabitQuantization
    flat: VectorIndexDetails.FlatCompression
    runtime_hints: _containers.ScalarMap[str, str]
    target_num_partitions: int
    def __init__(self, metric_type: _Optional[_Union[VectorMetricType, str]] = ..., target_partition_size: _Optional[int] = ..., hnsw_index_config: _Optional[_Union[HnswParameters, _Mapping]] = ..., pq: _Optional[_Union[VectorIndexDetails.ProductQuantization, _Mapping]] = ..., sq: _Optional[_Union[VectorIndexDetails.ScalarQuantization, _Mapping]] = ..., rq: _Optional[_Union[VectorIndexDetails.RabitQuantization, _Mapping]] = ..., flat: _Optional[_Union[VectorIndexDetails.FlatCompression, _Mapping]] = ..., runtime_hints: _Optional[_Mapping[str, str]] = ..., target_num_partitions: _Optional[int] = ...) -> None: ...

class BTreeIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BitmapIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LabelListIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BloomFilterIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NGramIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InvertedIndexDetails(_message.Message):
    __slots__ = ("base_tokenizer", "language", "with_position", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding", "min_ngram_length", "max_ngram_length", "prefix_only", "block_size", "code_config", "document_granularity", "posting_format_version")
    class DocumentGranularity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ROW: _ClassVar[InvertedIndexDetails.DocumentGranularity]
        LIST_ELEMENT: _ClassVar[InvertedIndexDetails.DocumentGranularity]
    ROW: InvertedIndexDetails.DocumentGranularity
    LIST_ELEMENT: InvertedIndexDetails.DocumentGranularity
    class CodeConfig(_message.Message):
        __slots__ = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
        SPLIT_IDENTIFIERS_FIELD_NUMBER: _ClassVar[int]
        SPLIT_ON_NUMERICS_FIELD_NUMBER: _ClassVar[int]
        PRESERVE_ORIGINAL_FIELD_NUMBER: _ClassVar[int]
        INDEX_OPERATORS_FIELD_NUMBER: _ClassVar[int]
        split_identifiers: bool
        split_on_numerics: bool
        preserve_original: bool
        index_operators: bool
        def __init__(self, split_identifiers: bool = ..., split_on_numerics: bool = ..., preserve_original: bool = ..., index_operators: bool = ...) -> None: ...
    BASE_TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    WITH_POSITION_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LOWER_CASE_FIELD_NUMBER: _ClassVar[int]
    STEM_FIELD_NUMBER: _ClassVar[int]
    REMOVE_STOP_WORDS_FIELD_NUMBER: _ClassVar[int]
    ASCII_FOLDING_FIELD_NUMBER: _ClassVar[int]
    MIN_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_ONLY_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    CODE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_GRANULARITY_FIELD_NUMBER: _ClassVar[int]
    POSTING_FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    base_tokenizer: str
    language: str
    with_position: bool
    max_token_length: int
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    block_size: int
    code_config: InvertedIndexDetails.CodeConfig
    document_granularity: InvertedIndexDetails.DocumentGranularity
    posting_format_version: int
    def __init__(self, base_tokenizer: _Optional[str] = ..., language: _Optional[str] = ..., with_position: bool = ..., max_token_length: _Optional[int] = ..., lower_case: bool = ..., stem: bool = ..., remove_stop_words: bool = ..., ascii_folding: bool = ..., min_ngram_length: _Optional[int] = ..., max_ngram_length: _Optional[int] = ..., prefix_only: bool = ..., block_size: _Optional[int] = ..., code_config: _Optional[_Union[InvertedIndexDetails.CodeConfig, _Mapping]] = ..., document_granularity: _Optional[_Union[InvertedIndexDetails.DocumentGranularity, str]] = ..., posting_format_version: _Optional[int] = ...) -> None: ...

class MinHashLshIndexDetails(_message.Message):
    __slots__ = ("num_hashes", "num_bands", "shingle_size", "tokenizer", "signature_version")
    NUM_HASHES_FIELD_NUMBER: _ClassVar[int]
    NUM_BANDS_FIELD_NUMBER: _ClassVar[int]
    SHINGLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_VERSION_FIELD_NUMBER: _ClassVar[int]
    num_hashes: int
    num_bands: int
    shingle_size: int
    tokenizer: InvertedIndexDetails
    signature_version: int
    def __init__(self, num_hashes: _Optional[int] = ..., num_bands: _Optional[int] = ..., shingle_size: _Optional[int] = ..., tokenizer: _Optional[_Union[InvertedIndexDetails, _Mapping]] = ..., signature_version: _Optional[int] = ...) -> None: ...

class ZoneMapIndexDetails(_message.Message):
    __slots__ = ("rows_per_zone", "use_seeds", "has_null_bitmap")
    ROWS_PER_ZONE_FIELD_NUMBER: _ClassVar[int]
    USE_SEEDS_FIELD_NUMBER: _ClassVar[int]
    HAS_NULL_BITMAP_FIELD_NUMBER: _ClassVar[int]
    rows_per_zone: int
    use_seeds: bool
    has_null_bitmap: bool
    def __init__(self, rows_per_zone: _Optional[int] = ..., use_seeds: bool = ..., has_null_bitmap: bool = ...) -> None: ...

class JsonIndexDetails(_message.Message):
    __slots__ = ("path", "target_details")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TARGET_DETAILS_FIELD_NUMBER: _ClassVar[int]
    path: str
    target_details: _any_pb2.Any
    def __init__(self, path: _Optional[str] = ..., target_details: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class RTreeIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FragmentReuseIndexDetails(_message.Message):
    __slots__ = ("inline", "external")
    class FragmentDigest(_message.Message):
        __slots__ = ("id", "physical_rows", "num_deleted_rows")
        ID_FIELD_NUMBER: _ClassVar[int]
        PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
        NUM_DELETED_ROWS_FIELD_NUMBER: _ClassVar[int]
        id: int
        physical_rows: int
        num_deleted_rows: int
        def __init__(self, id: _Optional[int] = ..., physical_rows: _Optional[int] = ..., num_deleted_rows: _Optional[int] = ...) -> None: ...
    class Group(_message.Message):
        __slots__ = ("changed_row_addrs", "old_fragments", "new_fragments")
        CHANGED_ROW_ADDRS_FIELD_NUMBER: _ClassVar[int]
        OLD_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
        NEW_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
        changed_row_addrs: bytes
        old_fragments: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.FragmentDigest]
        new_fragments: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.FragmentDigest]
        def __init__(self, changed_row_addrs: _Optional[bytes] = ..., old_fragments: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.FragmentDigest, _Mapping]]] = ..., new_fragments: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.FragmentDigest, _Mapping]]] = ...) -> None: ...
    class Version(_message.Message):
        __slots__ = ("dataset_version", "groups")
        DATASET_VERSION_FIELD_NUMBER: _ClassVar[int]
        GROUPS_FIELD_NUMBER: _ClassVar[int]
        dataset_version: int
        groups: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.Group]
        def __init__(self, dataset_version: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.Group, _Mapping]]] = ...) -> None: ...
    class InlineContent(_message.Message):
        __slots__ = ("legacy_versions",)
        LEGACY_VERSIONS_FIELD_NUMBER: _ClassVar[int]
        legacy_versions: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.Version]
        def __init__(self, legacy_versions: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.Version, _Mapping]]] = ...) -> None: ...
    INLINE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    inline: FragmentReuseIndexDetails.InlineContent
    external: _table_pb2.ExternalFile
    def __init__(self, inline: _Optional[_Union[FragmentReuseIndexDetails.InlineContent, _Mapping]] = ..., external: _Optional[_Union[_table_pb2.ExternalFile, _Mapping]] = ...) -> None: ...

class MemWalIndexDetails(_message.Message):
    __slots__ = ("compacted_sstables", "index_catchup")
    COMPACTED_SSTABLES_FIELD_NUMBER: _ClassVar[int]
    INDEX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    compacted_sstables: _containers.RepeatedCompositeFieldContainer[CompactedSsTable]
    index_catchup: _containers.RepeatedCompositeFieldContainer[IndexCatchupProgress]
    def __init__(self, compacted_sstables: _Optional[_Iterable[_Union[CompactedSsTable, _Mapping]]] = ..., index_catchup: _Optional[_Iterable[_Union[IndexCatchupProgress, _Mapping]]] = ...) -> None: ...

class CompactedSsTable(_message.Message):
    __slots__ = ("shard_id", "generation")
    SHARD_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    shard_id: _table_pb2.UUID
    generation: int
    def __init__(self, shard_id: _Optional[_Union[_table_pb2.UUID, _Mapping]] = ..., generation: _Optional[int] = ...) -> None: ...

class IndexCatchupProgress(_message.Message):
    __slots__ = ("index_name", "caught_up")
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    index_name: str
    caught_up: _containers.RepeatedCompositeFieldContainer[CompactedSsTable]
    def __init__(self, index_name: _Optional[str] = ..., caught_up: _Optional[_Iterable[_Union[CompactedSsTable, _Mapping]]] = ...) -> None: ...

class ShardManifest(_message.Message):
    __slots__ = ("version", "replay_after_wal_entry_position", "sstables")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REPLAY_AFTER_WAL_ENTRY_POSITION_FIELD_NUMBER: _ClassVar[int]
    SSTABLES_FIELD_NUMBER: _ClassVar[int]
    version: int
    replay_after_wal_entry_position: int
    sstables: _containers.RepeatedCompositeFieldContainer[SsTable]
    def __init__(self, version: _Optional[int] = ..., replay_after_wal_entry_position: _Optional[int] = ..., sstables: _Optional[_Iterable[_Union[SsTable, _Mapping]]] = ...) -> None: ...

class SsTable(_message.Message):
    __slots__ = ("generation", "path", "num_rows")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    path: str
    num_rows: int
    def __init__(self, generation: _Optional[int] = ..., path: _Optional[str] = ..., num_rows: _Optional[int] = ...) -> None: ...
