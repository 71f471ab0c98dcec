"""How values become page buffers: one module per encoding."""
