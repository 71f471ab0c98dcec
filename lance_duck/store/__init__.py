"""Bytes in, bytes out: local disk and object stores."""
