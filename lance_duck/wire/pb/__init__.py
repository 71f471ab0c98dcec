"""Messages generated from protos/ by `make protos`."""
