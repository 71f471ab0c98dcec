"""IndexConfig, IndexProgress, and descriptions of indexes."""

from lance_duck.verbs.indexes.describe import IndexDescription, IndexInformation, IndexSegmentDescription
from lance_duck.verbs.indexes.kinds import IndexConfig
from lance_duck.verbs.public.lance_operation import Index, IndexFile

__all__ = ["Index", "IndexConfig", "IndexDescription", "IndexFile", "IndexInformation", "IndexSegmentDescription"]
