"""From an operation to a new version: conflicts, rebase, manifest, commit."""
