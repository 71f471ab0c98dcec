"""Row addresses, stable row ids, deletion vectors, row versions."""
