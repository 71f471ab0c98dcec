from __future__ import annotations

from pathlib import Path

import obstore
import pytest

from lance_duck.errors import InvalidInputError, NotFoundError, StoreError, UnsupportedError
from lance_duck.store import open_source
from lance_duck.store.client import MEMORY


def test_a_file_opens_by_path_or_uri(tmp_path: Path) -> None:
    place = tmp_path / "sub dir" / "c%.bin"
    place.parent.mkdir()
    place.write_bytes(b"local")
    (tmp_path / "link").symlink_to(place)
    for uri in (str(place), place.as_uri(), (tmp_path / "link").as_uri()):
        source = open_source(uri)
        assert source.read([(0, source.size)])[0].tobytes() == b"local"
    obstore.put(MEMORY, "open source/x.bin", b"object")
    assert open_source("memory://open%20source/x.bin").size == 6


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("", InvalidInputError),
        ("name", InvalidInputError),
        ("sub/name", InvalidInputError),
        ("../name", InvalidInputError),
        ("file:name", InvalidInputError),
        ("file://host/name", InvalidInputError),
        ("s3://bucket", InvalidInputError),
        ("s3://bucket/", InvalidInputError),
        ("memory://a/../b", InvalidInputError),
        ("memory://a/..", InvalidInputError),
        ("ftp://host/name", UnsupportedError),
        ("memory://open source/none.bin", NotFoundError),
        ("/nowhere/at/all", NotFoundError),
        ("/", InvalidInputError),
        ("file:///", InvalidInputError),
    ],
)
def test_paths_that_are_not_files_are_rejected(uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_source(uri)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_source(str(tmp_path))
