"""Makes Spark's Python workers begin with all modules: the processes that they are forked from import these once.

Spark forks a worker after each error, and for each step of a plan one of its own kind; each imported the package anew.
"""

import importlib
import sys

if "pyspark.daemon" in sys.orig_argv:
    importlib.import_module(sys.orig_argv[-1])  # the worker's own module, by which the package knows where it is
    package = importlib.import_module("lance_duck.spark")
    if sys.orig_argv[-1] == "pyspark.worker":
        for name in package.__all__:
            getattr(package, name)
