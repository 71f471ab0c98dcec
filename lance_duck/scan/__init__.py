"""From a predicate and a snapshot to Arrow batches."""
