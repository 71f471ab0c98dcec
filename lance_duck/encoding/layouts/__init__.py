"""Page layouts of 2.1 and 2.2: miniblock, full zip, constant, blob; levels; and levels assembled into nested arrays."""
