"""What indexes are described by: how they are made, and what a table says of those that it has."""

from lance_duck.verbs.index_describe import IndexDescription, IndexInformation, IndexSegmentDescription
from lance_duck.verbs.index_kinds import IndexConfig
from lance_duck.verbs.lance_operation import Index, IndexFile

__all__ = ["Index", "IndexConfig", "IndexDescription", "IndexFile", "IndexInformation", "IndexSegmentDescription"]
