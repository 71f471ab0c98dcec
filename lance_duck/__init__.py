"""Lance tables as tables in DuckDB SQL."""

from importlib.metadata import PackageNotFoundError, version

from lance_duck import query
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.duck import Connection, connect, register
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptError,
    FormatError,
    IncompatibleError,
    IndexExistsError,
    IndexNotFoundError,
    IndexWarning,
    InternalError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    NotIndexableError,
    RetryableError,
    StoreError,
    UnknownColumnError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.file.blobs.column import BlobColumn
from lance_duck.file.blobs.file import BlobFile
from lance_duck.fragment import FragmentMetadata, LanceFragment
from lance_duck.precompile import WarmUp, warm_up
from lance_duck.recall import RecallReport, recall_report
from lance_duck.scan.options import ColumnOrdering
from lance_duck.scan.scanner import LanceScanner
from lance_duck.store import ExternalManifestStore, register_manifest_store
from lance_duck.text.tokenize import tokenize
from lance_duck.text.tokens import FtsToken
from lance_duck.verbs.columns.udf import BatchUDF, batch_udf
from lance_duck.verbs.public.bases import DatasetBasePath
from lance_duck.verbs.public.lance_operation import LanceOperation, Transaction
from lance_duck.wire.blob_type import Blob, BlobArray, BlobType, blob_array, blob_field
from lance_duck.write.options import WriteProgress
from lance_duck.write_dataset import write_dataset

try:
    __version__ = version("lance-duck")
except PackageNotFoundError:
    __version__ = "0+unknown"

__all__ = [
    "AlreadyExistsError",
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "ColumnOrdering",
    "CommitConflictError",
    "Connection",
    "CorruptError",
    "DatasetBasePath",
    "ExternalManifestStore",
    "FormatError",
    "FragmentMetadata",
    "FtsToken",
    "IncompatibleError",
    "IndexExistsError",
    "IndexNotFoundError",
    "IndexWarning",
    "InternalError",
    "InvalidInputError",
    "LanceDataset",
    "LanceDuckError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "NotFoundError",
    "NotIndexableError",
    "RecallReport",
    "RetryableError",
    "StoreError",
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
    "connect",
    "dataset",
    "query",
    "recall_report",
    "register",
    "register_manifest_store",
    "tokenize",
    "warm_up",
    "write_dataset",
]
