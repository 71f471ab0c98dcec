"""Named tables in a folder or behind a REST service, compatible with pylance, LanceDB and DuckDB's extension.

You hold: the properties of a namespace, and table names. You get: lists of names, table locations, and open datasets.
Never here: the contents of a table, except `__manifest`, which lists names.
"""

from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.connect import connect_namespace
from lance_duck.namespaces.directory import DirectoryNamespace
from lance_duck.namespaces.rest import RestNamespace

__all__ = ["DirectoryNamespace", "Namespace", "RestNamespace", "TableDescription", "connect_namespace"]
