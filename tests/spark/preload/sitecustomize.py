"""Make Spark's Python workers start with all modules, so that forked workers import them once.

Spark forks a new worker after each error and for each kind of plan step; each would import the package again.
"""

import importlib
import sys

if "pyspark.daemon" in sys.orig_argv:
    importlib.import_module(sys.orig_argv[-1])  # the worker's main module, from which the package derives its location
    package = importlib.import_module("lance_duck.spark")
    if sys.orig_argv[-1] == "pyspark.worker":
        for name in package.__all__:
            getattr(package, name)
