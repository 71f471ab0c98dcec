"""write_dataset: data become a table, or rows of one; written first (`staged`), committed afterwards."""
