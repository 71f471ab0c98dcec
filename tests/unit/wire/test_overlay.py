"""Data overlays of a manifest: their order, their fields, and the way back."""

from __future__ import annotations

import pytest

from lance_duck.errors import CorruptError
from lance_duck.wire.files.overlay import overlay_from_proto, without_fields
from lance_duck.wire.fragment import fragment_from_proto
from lance_duck.wire.fragment_write import fragment_to_proto
from lance_duck.wire.pb import table_pb2


def fragment(*versions: int) -> table_pb2.DataFragment:
    file = {"path": "a.lance", "fields": [0, 1], "column_indices": [0, 1], "file_major_version": 2}
    overlays = [
        {
            "data_file": {**file, "path": f"{place}.lance", "file_minor_version": 1},
            "field_coverage": {"offset_bitmaps": [b"zero", b"one"]},
            "committed_version": version,
        }
        for place, version in enumerate(versions)
    ]
    return table_pb2.DataFragment(id=1, physical_rows=3, files=[file], overlays=overlays)


def test_overlays_are_ordered_by_version() -> None:
    overlays = fragment_from_proto(fragment(7, 5, 7, 6), "t").overlays
    assert [(o.committed_version, o.file.path) for o in overlays] == [
        *((5, "1.lance"), (6, "3.lance")),
        *((7, "0.lance"), (7, "2.lance")),
    ]


def test_overlays_round_trip_with_unknown_fields() -> None:
    proto = fragment(5, 6)
    proto.overlays[1].MergeFromString(bytes([0x78, 9]))
    built = fragment_from_proto(proto, "t")
    assert fragment_to_proto(built, proto) == proto
    assert fragment_from_proto(fragment_to_proto(built), "t") == built
    shared = table_pb2.DataOverlayFile(shared_offset_bitmap=b"all", data_file=proto.overlays[0].data_file)
    overlay = overlay_from_proto(shared, "t")
    assert [overlay.bitmap_of(i) for i in (0, 1, 2)] == [b"all", b"all", None]


def test_fields_stored_elsewhere_are_removed_from_overlays() -> None:
    (overlay,) = fragment_from_proto(fragment(5), "t").overlays
    (left,) = without_fields([overlay], {0})
    assert (left.file.fields, left.bitmap_of(0), left.bitmap_of(1)) == ((-2, 1), None, b"one")
    assert without_fields([left], {1, 7}) == ()


def test_a_missing_bitmap_is_damage() -> None:
    proto = fragment(5)
    del proto.overlays[0].field_coverage.offset_bitmaps[1]
    with pytest.raises(CorruptError, match="bitmaps"):
        fragment_from_proto(proto, "t")
    proto.overlays[0].ClearField("field_coverage")
    with pytest.raises(CorruptError, match="bitmaps"):
        fragment_from_proto(proto, "t")


def test_an_overlay_without_a_file_is_damage() -> None:
    proto = fragment(5)
    proto.overlays[0].ClearField("data_file")
    with pytest.raises(CorruptError, match="does not have a file"):
        fragment_from_proto(proto, "t")
