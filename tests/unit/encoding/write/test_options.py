from __future__ import annotations

from lance_duck.encoding.write.options import EncodingOptions


def test_unrelated_metadata_leaves_the_default_options() -> None:
    assert EncodingOptions.from_metadata({}) == EncodingOptions()
    assert EncodingOptions.from_metadata({"other": "1"}, "2.1") == EncodingOptions(version="2.1")


def test_every_option_key_is_read() -> None:
    asked = {
        "compression": "ZSTD",
        "compression-level": "7",
        "rle-threshold": "0.25",
        "bss": "on",
        "dict-divisor": "4",
        "dict-size-ratio": "0.5",
        "dict-values-compression": "none",
        "dict-values-compression-level": "2",
        "structural-encoding": "fullzip",
        "packed": "true",
    }
    choice = EncodingOptions.from_metadata(
        {f"lance-encoding:{key}": value for key, value in asked.items()}, "2.2", "binary"
    )
    assert choice == EncodingOptions("2.2", "zstd", 7, 0.25, "on", 4, 0.5, "none", 2, "fullzip", True, False)


def test_invalid_numbers_in_metadata_are_ignored() -> None:
    asked = {"compression-level": "high", "rle-threshold": "2", "dict-size-ratio": "nan", "dict-divisor": ""}
    assert (
        EncodingOptions.from_metadata({f"lance-encoding:{key}": value for key, value in asked.items()})
        == EncodingOptions()
    )


def test_the_old_key_of_packed_structs_counts() -> None:
    assert EncodingOptions.from_metadata({"packed": "true"}).packed
