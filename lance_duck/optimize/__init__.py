"""The public interface of compaction, optimization of indexes, cleanup and validation.

You hold: a dataset, and options of a compaction. You get: the dataset on its new version, plans, tasks and results that
pickle, and problems. `compaction` has the steps of a compaction, `optimizer` what
`LanceDataset.optimize` is, `upkeep` the methods of a dataset. Never here: what is
rewritten or removed, which `maintenance` decides.
"""

from typing import TYPE_CHECKING

from lance_duck import lazy

if TYPE_CHECKING:
    from lance_duck.optimize.compaction import (
        Compaction,
        CompactionMetrics,
        CompactionPlan,
        CompactionTask,
        RewriteResult,
    )
    from lance_duck.optimize.optimizer import AutoCleanupConfig, DatasetOptimizer
    from lance_duck.optimize.upkeep import Upkeep

lazy.package(
    __name__,
    {
        "compaction": ("Compaction", "CompactionMetrics", "CompactionPlan", "CompactionTask", "RewriteResult"),
        "optimizer": ("AutoCleanupConfig", "DatasetOptimizer"),
        "upkeep": ("Upkeep",),
    },
)

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
