from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import UnsupportedError
from lance_duck.wire.flags import WRITABLE, check_writable
from lance_duck.wire.fragment import DataFile, DeletionFile, ExternalFile, Fragment, fragment_from_proto
from lance_duck.wire.fragment_write import fragment_to_proto
from lance_duck.wire.manifest import read_manifest
from lance_duck.wire.manifest_write import manifest_file, stamp_writer, writer_version
from lance_duck.wire.pb import table_pb2, transaction_pb2

counts = st.integers(0, 1 << 31)
base_ids = st.none() | counts
sequences = st.none() | st.binary(max_size=3) | st.builds(ExternalFile, st.text(max_size=3), counts, counts)
data_files = st.integers(0, 3).flatmap(
    lambda width: st.builds(
        DataFile,
        st.text(max_size=5),
        st.tuples(*[st.integers(-2, 50)] * width),
        st.tuples(*[st.integers(-1, 50)] * width),
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.none() | st.integers(1, 1 << 40),
        base_ids,
    )
)
deletion_files = st.none() | st.builds(
    DeletionFile, st.sampled_from(["arrow", "bin"]), counts, st.integers(0, (1 << 64) - 1), st.integers(0, 9), base_ids
)
fragments = st.builds(
    Fragment,
    counts,
    st.lists(data_files, max_size=2).map(tuple),
    deletion_files,
    st.integers(9, 1 << 31),
    sequences,
    sequences,
    sequences,
)


@given(fragments)
def test_fragments_round_trip_through_protobuf(fragment: Fragment) -> None:
    proto = table_pb2.DataFragment.FromString(fragment_to_proto(fragment).SerializeToString())
    assert fragment_from_proto(proto, "here") == fragment


@given(fragments, fragments)
def test_a_fragment_replaces_an_earlier_message(before: Fragment, after: Fragment) -> None:
    assert fragment_from_proto(fragment_to_proto(after, fragment_to_proto(before)), "here") == after


def test_unknown_fragment_fields_are_preserved() -> None:
    unknown = bytes([12 << 3 | 2, 1, 7])
    base = table_pb2.DataFragment.FromString(
        table_pb2.DataFragment(id=1, physical_rows=3).SerializeToString() + unknown
    )
    proto = fragment_to_proto(Fragment(1, (), None, 3, b"ids", None, None), base)
    assert unknown in proto.SerializeToString()
    assert proto.inline_row_ids == b"ids"


@pytest.mark.parametrize("indices", [0, 2])
@pytest.mark.parametrize("inline", [False, True])
def test_a_manifest_file_round_trips(indices: int, inline: bool) -> None:
    segments = [table_pb2.IndexMetadata(uuid={"uuid": bytes(16)}, name=f"i{n}") for n in range(indices)]
    transaction = transaction_pb2.Transaction(uuid="u", append={}) if inline else None
    proto = table_pb2.Manifest(version=3, transaction_section_deprecated=9, index_section=9)
    stamp_writer(proto, datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC))
    data = manifest_file(proto, transaction, segments)
    read = read_manifest(data, "here")
    assert [segment.name for segment in read.indices] == ["i0", "i1"][:indices]
    assert read.inline_transaction == transaction
    assert (read.version, read.writer) == (3, ("lance_duck", writer_version()))
    assert read.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
    assert not read.proto.HasField("transaction_section_deprecated")


def test_unknown_writer_flags_are_rejected_by_number_and_name() -> None:
    check_writable(WRITABLE, "t")
    with pytest.raises(UnsupportedError, match=r"t: writer feature flags 512 \(unknown\), 65536 \(zone write seeds\)"):
        check_writable(WRITABLE | 512 | 65536, "t")
