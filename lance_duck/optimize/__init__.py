"""The public interface of compaction, index optimization, cleanup and validation.

You hold: a dataset and compaction options. You get: the dataset at its new version, plans, tasks and results, and
problems. `compaction` runs compaction in steps, `optimizer` is `LanceDataset.optimize`, and `upkeep` holds the
dataset's methods. Never here: the choice of the data to rewrite or remove (`maintenance`).
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
