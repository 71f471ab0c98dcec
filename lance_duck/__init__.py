"""Lance tables as tables in DuckDB SQL."""

from typing import TYPE_CHECKING

from lance_duck import lazy

if TYPE_CHECKING:
    from lance_duck import query
    from lance_duck.aio import AsyncConnection, AsyncDataset, connect_async, dataset_async
    from lance_duck.dataset import LanceDataset, dataset
    from lance_duck.duck.connection import Connection, connect
    from lance_duck.duck.register import register
    from lance_duck.embedders import register_embedder
    from lance_duck.errors import (
        AlreadyExistsError,
        ArrayLimitError,
        CommitConflictError,
        CorruptError,
        DataMismatchError,
        DerivedDataWarning,
        DuplicateKeyError,
        FormatError,
        IncompatibleError,
        IndexExistsError,
        IndexNotFoundError,
        IndexWarning,
        InternalError,
        InvalidInputError,
        LanceDuckError,
        MemWalWarning,
        NotFoundError,
        NotIndexableError,
        PartlyCommittedError,
        RetryableError,
        StoreError,
        TableWarning,
        UnknownColumnError,
        UnsupportedError,
        WrongTypeError,
    )
    from lance_duck.file.blobs.file import BlobColumn, BlobFile
    from lance_duck.fragment import FragmentMetadata, LanceFragment
    from lance_duck.maintenance.cleanup import CleanupExplanation, CleanupReferencedBranch, CleanupStats
    from lance_duck.maintenance.cleanup_plan import CleanupCandidateFile
    from lance_duck.namespaces import DirectoryNamespace, Namespace, RestNamespace, TableDescription, connect_namespace
    from lance_duck.namespaces.folder_transaction import FolderTransaction, transaction
    from lance_duck.otel import instrument
    from lance_duck.precompile import KernelBuild, WarmUp, build_kernels, warm_up
    from lance_duck.query.marks import highlight, snippet
    from lance_duck.recall import RecallReport, recall_report
    from lance_duck.scan.options import ColumnOrdering
    from lance_duck.scan.scanner import LanceScanner
    from lance_duck.scan.statistics import ScanStatistics
    from lance_duck.schema import json_to_schema, schema_to_json
    from lance_duck.store import ExternalManifestStore, register_manifest_store
    from lance_duck.stream_writer import StreamWriter, stream_writer
    from lance_duck.telemetry.metrics import metrics
    from lance_duck.text.analyser import tokenize
    from lance_duck.text.tokens import FtsToken
    from lance_duck.verbs.columns.udf import BatchUDF, batch_udf
    from lance_duck.verbs.indexes.kinds import IndexProgress
    from lance_duck.verbs.merge.builder import MergeInsertBuilder
    from lance_duck.verbs.public.bases import DatasetBasePath
    from lance_duck.verbs.public.lance_operation import Index, IndexFile, LanceOperation, Transaction
    from lance_duck.verbs.statistics import DataStatistics, FieldStatistics
    from lance_duck.version import __version__
    from lance_duck.wire.blob_type import Blob, BlobArray, BlobType, blob_array, blob_field
    from lance_duck.write.options import WriteProgress
    from lance_duck.write_dataset import write_dataset

lazy.package(
    __name__,
    {
        "aio": ("AsyncConnection", "AsyncDataset", "connect_async", "dataset_async"),
        "dataset": ("LanceDataset", "dataset"),
        "duck.connection": ("Connection", "connect"),
        "duck.register": ("register",),
        "embedders": ("register_embedder",),
        "errors": (
            "AlreadyExistsError",
            "ArrayLimitError",
            "CommitConflictError",
            "CorruptError",
            "DataMismatchError",
            "DerivedDataWarning",
            "DuplicateKeyError",
            "FormatError",
            "IncompatibleError",
            "IndexExistsError",
            "IndexNotFoundError",
            "IndexWarning",
            "InternalError",
            "InvalidInputError",
            "LanceDuckError",
            "MemWalWarning",
            "NotFoundError",
            "NotIndexableError",
            "PartlyCommittedError",
            "RetryableError",
            "StoreError",
            "TableWarning",
            "UnknownColumnError",
            "UnsupportedError",
            "WrongTypeError",
        ),
        "file.blobs.file": ("BlobColumn", "BlobFile"),
        "fragment": ("FragmentMetadata", "LanceFragment"),
        "namespaces": ("DirectoryNamespace", "Namespace", "RestNamespace", "TableDescription", "connect_namespace"),
        "namespaces.folder_transaction": ("FolderTransaction", "transaction"),
        "precompile": ("KernelBuild", "WarmUp", "build_kernels", "warm_up"),
        "recall": ("RecallReport", "recall_report"),
        "scan.options": ("ColumnOrdering",),
        "scan.scanner": ("LanceScanner",),
        "schema": ("json_to_schema", "schema_to_json"),
        "store": ("ExternalManifestStore", "register_manifest_store"),
        "query.marks": ("highlight", "snippet"),
        "telemetry.metrics": ("metrics",),
        "otel": ("instrument",),
        "stream_writer": ("StreamWriter", "stream_writer"),
        "text.analyser": ("tokenize",),
        "text.tokens": ("FtsToken",),
        "verbs.columns.udf": ("BatchUDF", "batch_udf"),
        "maintenance.cleanup": ("CleanupExplanation", "CleanupReferencedBranch", "CleanupStats"),
        "maintenance.cleanup_plan": ("CleanupCandidateFile",),
        "scan.statistics": ("ScanStatistics",),
        "verbs.indexes.kinds": ("IndexProgress",),
        "verbs.merge.builder": ("MergeInsertBuilder",),
        "verbs.statistics": ("DataStatistics", "FieldStatistics"),
        "verbs.public.bases": ("DatasetBasePath",),
        "verbs.public.lance_operation": ("Index", "IndexFile", "LanceOperation", "Transaction"),
        "wire.blob_type": ("Blob", "BlobArray", "BlobType", "blob_array", "blob_field"),
        "write.options": ("WriteProgress",),
        "version": ("__version__",),
        "write_dataset": ("write_dataset",),
    },
    {
        **dict.fromkeys(("load", "open", "open_table", "table"), "dataset(uri)"),
        **dict.fromkeys(("read", "read_dataset", "read_lance", "read_table", "scan_lance"), "dataset(uri).to_table()"),
        **{
            f"read_{form}": f'write_dataset(duckdb.read_{form}("…"), uri) for a table of its rows'
            for form in ("csv", "json", "parquet")
        },
        "read_pandas": "dataset(uri).to_pandas()",
        **dict.fromkeys(("create_table", "save", "write", "write_lance", "write_table"), "write_dataset(data, uri)"),
        **dict.fromkeys(("execute", "sql"), 'connect(folder).sql("…")'),
    },
)

__all__ = [
    "AlreadyExistsError",
    "ArrayLimitError",
    "AsyncConnection",
    "AsyncDataset",
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "ColumnOrdering",
    "CommitConflictError",
    "Connection",
    "CorruptError",
    "DataMismatchError",
    "DataStatistics",
    "DatasetBasePath",
    "DerivedDataWarning",
    "DirectoryNamespace",
    "DuplicateKeyError",
    "ExternalManifestStore",
    "FieldStatistics",
    "FolderTransaction",
    "FormatError",
    "FragmentMetadata",
    "FtsToken",
    "IncompatibleError",
    "Index",
    "IndexExistsError",
    "IndexFile",
    "IndexNotFoundError",
    "IndexProgress",
    "IndexWarning",
    "InternalError",
    "InvalidInputError",
    "KernelBuild",
    "LanceDataset",
    "LanceDuckError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MemWalWarning",
    "MergeInsertBuilder",
    "Namespace",
    "NotFoundError",
    "NotIndexableError",
    "PartlyCommittedError",
    "RecallReport",
    "RestNamespace",
    "RetryableError",
    "ScanStatistics",
    "StoreError",
    "StreamWriter",
    "TableDescription",
    "TableWarning",
    "Transaction",
    "UnknownColumnError",
    "UnsupportedError",
    "WarmUp",
    "WriteProgress",
    "WrongTypeError",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "build_kernels",
    "connect",
    "connect_async",
    "connect_namespace",
    "dataset",
    "dataset_async",
    "highlight",
    "instrument",
    "json_to_schema",
    "metrics",
    "query",
    "recall_report",
    "register",
    "register_embedder",
    "register_manifest_store",
    "schema_to_json",
    "snippet",
    "stream_writer",
    "tokenize",
    "transaction",
    "warm_up",
    "write_dataset",
]
