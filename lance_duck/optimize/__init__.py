"""The public interface of compaction, optimization of indexes, cleanup and validation.

You hold: a dataset, and options of a compaction. You get: the dataset on its new version, plans, tasks and results that
pickle, and problems. `compaction` has the steps of a compaction, `upkeep` the methods of a dataset. Never here: what is
rewritten or removed, which `maintenance` decides.
"""

from lance_duck.optimize.compaction import (
    Compaction,
    CompactionMetrics,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)
from lance_duck.optimize.upkeep import AutoCleanupConfig, DatasetOptimizer, Upkeep

__all__ = [
    "AutoCleanupConfig",
    "Compaction",
    "CompactionMetrics",
    "CompactionPlan",
    "CompactionTask",
    "DatasetOptimizer",
    "RewriteResult",
    "Upkeep",
]
