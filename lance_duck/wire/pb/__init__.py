"""Messages generated from protos/ by `make protos`.

The code is generated with the oldest supported protobuf. protobuf 6.30 and 6.31 warn once per file that the next major
release may reject the file. protobuf 7 accepts all files, and the tests run with it.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Protobuf gencode version", UserWarning)
    from lance_duck.wire.pb import (
        encodings20_pb2,
        encodings21_pb2,
        encodings23_pb2,
        file2_pb2,
        file_pb2,
        flight_sql_pb2,
        index_pb2,
        rowids_pb2,
        table_pb2,
        transaction_pb2,
    )

__all__ = [
    "encodings20_pb2",
    "encodings21_pb2",
    "encodings23_pb2",
    "file2_pb2",
    "file_pb2",
    "flight_sql_pb2",
    "index_pb2",
    "rowids_pb2",
    "table_pb2",
    "transaction_pb2",
]
