"""Tables by name, compatible with pylance, LanceDB and DuckDB's extension: in a folder, or behind a REST service.

You hold: the properties of a namespace, names. You get: names, table locations, datasets on them.
Never here: the contents of a table, except `__manifest`, which lists names.
"""

from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.connect import connect_namespace
from lance_duck.namespaces.directory import DirectoryNamespace
from lance_duck.namespaces.rest import RestNamespace

__all__ = ["DirectoryNamespace", "Namespace", "RestNamespace", "TableDescription", "connect_namespace"]
