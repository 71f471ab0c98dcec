"""IndexConfig, IndexProgress, descriptions of indexes, and models for vector indexes built in separate segments."""

from lance_duck.verbs.indexes.describe import IndexDescription, IndexInformation, IndexSegmentDescription
from lance_duck.verbs.indexes.kinds import IndexConfig
from lance_duck.verbs.indexes.vector_models import IndicesBuilder, IvfModel, PqModel
from lance_duck.verbs.public.lance_operation import Index, IndexFile

__all__ = [
    "Index",
    "IndexConfig",
    "IndexDescription",
    "IndexFile",
    "IndexInformation",
    "IndexSegmentDescription",
    "IndicesBuilder",
    "IvfModel",
    "PqModel",
]
